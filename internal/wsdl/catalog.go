package wsdl

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hhfr/hhfr/internal/xsd"
)

// catalog says where documents are that are named otherwise: by locations or namespaces (OASIS XML
// Catalogs 1.1, 7 October 2005: uri, system, public, rewriteURI and rewriteSystem).
type catalog struct {
	names    map[string]string
	prefixes []rewrite       // the longest first
	folders  map[string]bool // those of the files that were asked for
}

type rewrite struct{ from, to string }

const catalogs = "urn:oasis:names:tc:entity:xmlns:xml:catalog"

// entries are the elements of a catalog, with the attributes that have the name and the location.
var entries = map[string][2]string{
	"uri": {"name", "uri"}, "system": {"systemId", "uri"}, "public": {"publicId", "uri"},
	"rewriteURI":    {"uriStartString", "rewritePrefix"},
	"rewriteSystem": {"systemIdStartString", "rewritePrefix"},
}

// readCatalog reads a catalog; relative locations in it are relative to it. Without a file it is
// empty.
func readCatalog(file string) (*catalog, error) {
	c := &catalog{names: map[string]string{}, folders: map[string]bool{}}
	if file == "" {
		return c, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	root, err := xsd.ParseDocument(file, text)
	if err != nil {
		return nil, err
	}
	if root.Name != (xsd.QName{Space: catalogs, Local: "catalog"}) {
		return nil, &xsd.Problem{Place: root.Place, What: fmt.Sprintf("%s is no catalog of OASIS", root.Name)}
	}
	for _, n := range root.Children {
		attrs, known := entries[n.Name.Local]
		if !known || n.Name.Space != catalogs {
			return nil, &xsd.Problem{Place: n.Place, What: fmt.Sprintf("%s is not supported: there are uri, system, "+
				"public, rewriteURI and rewriteSystem", n.Name.Local)}
		}
		from, to := n.Attr(attrs[0]), n.Attr(attrs[1])
		if from == "" || to == "" {
			return nil, &xsd.Problem{Place: n.Place, What: fmt.Sprintf("%s without %s and %s", n.Name.Local, attrs[0],
				attrs[1])}
		}
		prefix := attrs[1] == "rewritePrefix"
		at, err := xsd.Resolve(file, to)
		if err != nil {
			return nil, &xsd.Problem{Place: n.Place, What: err.Error()}
		}
		if prefix {
			if strings.HasSuffix(to, "/") { // which a path loses when it is resolved
				at = strings.TrimSuffix(at, "/") + "/"
			}
			c.prefixes = append(c.prefixes, rewrite{from, at})
		} else {
			c.names[from] = at
		}
	}
	slices.SortStableFunc(c.prefixes, func(a, b rewrite) int { return cmp.Compare(len(b.from), len(a.from)) })
	return c, nil
}

// find is where a document of this name is; "": the catalog does not know.
func (c *catalog) find(name string) (at string) {
	at = c.names[name]
	for _, r := range c.prefixes {
		if rest, ok := strings.CutPrefix(name, r.from); ok && at == "" {
			at = r.to + rest
		}
	}
	if at != "" {
		c.folders[filepath.Dir(at)] = true
	}
	return at
}

// locate is where a document of this name is: there, if the catalog does not know.
func (c *catalog) locate(name string) string { return cmp.Or(c.find(name), name) }

// has reports whether a file is beside one that the catalog has named.
func (c *catalog) has(file string) bool { return c.folders[filepath.Dir(file)] }
