package xsd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
)

// Loader reads documents and those that they import, each once, into a [Set]. It is for one
// goroutine.
type Loader struct {
	Set *Set
	// Open returns the text of a document: a path of a file, or a URL.
	Open func(ctx context.Context, location string) ([]byte, error)
	// Locate returns where a document is that is named so; nil: there.
	Locate func(location string) string
	// Known returns the locations of documents of a namespace that is imported without a location,
	// or from one that cannot be read; nil: none are known.
	Known func(space string) []string
	// Inline are namespaces of schemas that will be taken anyway: those of a WSDL.
	Inline map[string]bool

	documents map[string]*DocumentNode
	failed    map[string]error
	taken     map[takenSchema]bool
	redefined map[redefinition]*DocumentNode
	// strays are imports whose file has another namespace than they name, by the file's.
	strays   map[string][]stray
	total    int
	elements int
}

// stray is a file that an import names for another namespace.
type stray struct{ root, by *DocumentNode }

// takenSchema is a schema in a namespace: one without a namespace can be included by several.
type takenSchema struct {
	root *DocumentNode
	as   string
}

// Document reads a document, once.
func (l *Loader) Document(ctx context.Context, location string) (*DocumentNode, error) {
	if l.Locate != nil {
		location = l.Locate(location)
	}
	if n := l.documents[location]; n != nil {
		return n, nil
	}
	if err := l.failed[location]; err != nil {
		return nil, err
	}
	l.begin()
	n, err := l.read(ctx, location)
	if err != nil {
		l.failed[location] = err
		return nil, err
	}
	l.documents[location] = n
	return n, nil
}

func (l *Loader) begin() {
	if l.documents == nil {
		l.documents, l.failed, l.taken = map[string]*DocumentNode{}, map[string]error{}, map[takenSchema]bool{}
		l.redefined, l.strays = map[redefinition]*DocumentNode{}, map[string][]stray{}
	}
}

func (l *Loader) read(ctx context.Context, location string) (*DocumentNode, error) {
	if len(l.documents)+len(l.failed) >= MaxDocuments {
		return nil, fmt.Errorf("more than %d documents", MaxDocuments)
	}
	text, err := l.Open(ctx, location)
	if err != nil {
		return nil, err
	}
	if l.total += len(text); l.total > maxTotal {
		return nil, fmt.Errorf("documents of more than %d bytes in all", maxTotal)
	}
	n, err := ParseDocument(location, text)
	if err != nil {
		return nil, err
	}
	if l.elements += n.elements; l.elements > 2*maxElements {
		return nil, fmt.Errorf("documents of more than %d elements in all", 2*maxElements)
	}
	return n, nil
}

// Schema takes a schema element, and what it includes and imports. as is the namespace of a schema
// that has none and is included by one that has.
func (l *Loader) Schema(ctx context.Context, root *DocumentNode, as string) {
	if root.Attr("targetNamespace") != "" {
		as = ""
	}
	l.begin()
	if l.taken[takenSchema{root, as}] {
		return
	}
	l.taken[takenSchema{root, as}] = true
	d := l.Set.document(root, as)
	for _, c := range root.Children {
		if c.Name.Space != xmlns.XSD {
			continue
		}
		switch c.Name.Local {
		case "include":
			l.include(ctx, c, d.target)
		case "redefine":
			l.redefine(ctx, c, d)
		case "import":
			l.Import(ctx, c)
		}
	}
	l.Set.add(root, d)
}

// include takes the schema that an include or redefine names; nil: there is none.
func (l *Loader) include(ctx context.Context, n *DocumentNode, target string) *DocumentNode {
	included, err := l.schemaAt(ctx, n)
	switch {
	case err != nil && target != "" && l.known(ctx, target):
	case err != nil:
		p := problemAt(n.Place, "%s of %s: %v", n.Name.Local, n.Attr("schemaLocation"), reason(err))
		l.Set.missing[target] = p
		l.Set.note(p)
	case included.Attr("targetNamespace") != "" && included.Attr("targetNamespace") != target:
		l.Set.note(problemAt(n.Place, "%s of %s, which has the namespace %s", n.Name.Local, n.Attr("schemaLocation"),
			included.Attr("targetNamespace")))
	default:
		l.Schema(ctx, included, target)
	}
	return included
}

// Import takes the schema that an import names.
func (l *Loader) Import(ctx context.Context, n *DocumentNode) {
	space := n.Attr("namespace")
	if space == xmlns.XSD || space == xmlns.XML && n.Attr("schemaLocation") == "" {
		return
	}
	if l.Inline[space] && n.Attr("schemaLocation") == "" {
		return
	}
	root, err := l.schemaAt(ctx, n)
	if err == nil && root.Attr("targetNamespace") != space {
		own := root.Attr("targetNamespace")
		err = fmt.Errorf("it has the namespace %q", own)
		l.strays[own] = append(l.strays[own], stray{root, n})
	}
	if err != nil && !l.Inline[space] && l.known(ctx, space) {
		return
	}
	if err != nil {
		if l.Set.missing[space] == nil {
			l.Set.missing[space] = problemAt(n.Place, "import of %s: %v", n.Attr("schemaLocation"), reason(err))
		}
		return
	}
	l.Schema(ctx, root, "")
	if root.parent == nil {
		return
	}
	for _, other := range root.parent.All(xsName("schema")) { // of the same WSDL
		if other.Attr("targetNamespace") == space {
			l.Schema(ctx, other, "")
		}
	}
}

// known takes the schemas of a namespace that are known without their location; false: there are
// none.
func (l *Loader) known(ctx context.Context, space string) (some bool) {
	roots := l.knownRoots(ctx, space)
	for _, root := range roots {
		l.Schema(ctx, root, "")
	}
	return len(roots) > 0
}

func (l *Loader) knownRoots(ctx context.Context, space string) (roots []*DocumentNode) {
	if l.Known == nil {
		return nil
	}
	for _, location := range l.Known(space) {
		root, err := l.Document(ctx, location)
		if err == nil && root.Name == xsName("schema") && root.Attr("targetNamespace") == space {
			roots = append(roots, root)
		}
	}
	return roots
}

// Complete takes what imports leave out. A file that was imported for another namespace than its
// own is an error of the import (XML Schema 1.0, section 4.2.3), and said; it is taken for its own
// unless other schemas are there for that. Where schemas, and these elements of WSDL, refer to what
// nothing declares, a schema that is known and does is taken, which is said but for standards.
func (l *Loader) Complete(ctx context.Context, also ...*DocumentNode) {
	had, seen := map[string]bool{}, map[takenSchema]bool{}
	wanted, offered := map[globalName]bool{}, offers{
		"": nil, xmlns.XSD: nil, xmlns.XML: nil, xmlns.SOAP11Encoding: nil, xmlns.SOAP12Encoding: nil,
	}
	for _, n := range also {
		n.references(wanted)
	}
	for before := -1; before < len(l.taken); {
		before = len(l.taken)
		for s := range l.taken {
			if !seen[s] {
				seen[s], had[cmp.Or(s.root.Attr("targetNamespace"), s.as)] = true, true
				s.root.references(wanted)
			}
		}
		for _, space := range slices.Sorted(maps.Keys(l.strays)) {
			for _, s := range l.strays[space] {
				if !had[space] {
					l.Set.note(problemAt(s.by.Place, "import of %s for the namespace %q: it has the namespace %q, and "+
						"is taken for that", s.by.Attr("schemaLocation"), s.by.Attr("namespace"), space))
					l.Schema(ctx, s.root, "")
				}
			}
		}
		for _, g := range slices.SortedStableFunc(maps.Keys(wanted), func(a, b globalName) int {
			return cmp.Or(compareNames(a.name, b.name), cmp.Compare(a.kind, b.kind))
		}) {
			if l.Set.globals[g] != nil {
				continue
			}
			if root := offered.of(ctx, l, g); root != nil {
				l.Schema(ctx, root, "")
				if at := root.Place.Location; !strings.HasPrefix(at, Standard) {
					l.Set.note(problemAt(Position{Location: at}, "taken for %s %s, as nothing says where that is",
						g.kind, g.name))
				}
			}
		}
		clear(wanted)
	}
}

// offers are what known schemas declare, by namespaces that were looked at.
type offers map[string]map[globalName]*DocumentNode

// of is the first known schema that declares something; nil: there is none.
func (o offers) of(ctx context.Context, l *Loader, g globalName) *DocumentNode {
	space := g.name.Space
	list, known := o[space]
	if !known {
		list = map[globalName]*DocumentNode{}
		o[space] = list
		for _, root := range slices.Backward(l.knownRoots(ctx, space)) {
			for _, c := range root.Children {
				if c.Name.Space == xmlns.XSD {
					list[globalName{kinds[c.Name.Local], QName{space, c.Attr("name")}}] = root
				}
			}
		}
	}
	return list[g]
}

// references notes what an element of a schema or WSDL, and all inside, refer to.
func (n *DocumentNode) references(list map[globalName]bool) {
	for _, a := range n.Attrs {
		kind := "type"
		switch a.Name.Local {
		case "type", "base", "itemType", "memberTypes", "arrayType":
		case "element", "substitutionGroup":
			kind = "element"
		case "ref":
			kind = n.Name.Local
		default:
			continue
		}
		for text := range strings.FieldsSeq(a.Value) {
			text, _, _ = strings.Cut(text, "[") // of an arrayType
			if name, ok := n.QName(text); ok {
				list[globalName{kind, name}] = true
			}
		}
	}
	for _, c := range n.Children {
		c.references(list)
	}
}

var errNowhere = errors.New("there is no schemaLocation")

// schemaAt reads the schema that an include or import names.
func (l *Loader) schemaAt(ctx context.Context, n *DocumentNode) (*DocumentNode, error) {
	location := n.Attr("schemaLocation")
	if location == "" {
		return nil, errNowhere
	}
	at, err := Resolve(n.Place.Location, location)
	if err != nil {
		return nil, err
	}
	root, err := l.Document(ctx, at)
	if err != nil {
		return nil, err
	}
	if root.Name != xsName("schema") {
		// A WSDL may be imported for its types.
		if types := root.First(QName{xmlns.WSDL, "types"}); types != nil {
			for _, schema := range types.All(xsName("schema")) {
				if schema.Attr("targetNamespace") == n.Attr("namespace") {
					return schema, nil
				}
			}
		}
		return nil, fmt.Errorf("%s is no schema but %s", at, root.Name)
	}
	return root, nil
}

// reason is an error without the place that stands before it anyway.
func reason(err error) string {
	if p := (*Problem)(nil); errors.As(err, &p) {
		return fmt.Sprintf("line %d, column %d: %s", p.Place.Line, p.Place.Column, p.What)
	}
	return err.Error()
}

var (
	isURL   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]+:`) // a drive of Windows has one letter
	hasHost = regexp.MustCompile(`^https?://`)
)

// Resolve returns the location that a document at base means by a reference: relative to base,
// whether that is a file or a URL.
func Resolve(base, reference string) (string, error) {
	switch {
	case hasHost.MatchString(reference):
		return reference, nil
	case strings.HasPrefix(reference, "file:"):
		u, err := url.Parse(reference)
		if err != nil {
			return "", err
		}
		return filepath.FromSlash(u.Path), nil
	case isURL.MatchString(reference):
		return "", fmt.Errorf("%s is no location", reference)
	case hasHost.MatchString(base):
		from, err := url.Parse(base)
		if err != nil {
			return "", err
		}
		to, err := from.Parse(reference)
		if err != nil {
			return "", err
		}
		return to.String(), nil
	case filepath.IsAbs(reference):
		return reference, nil
	}
	reference, _, _ = strings.Cut(reference, "#")
	if path, err := url.PathUnescape(reference); err == nil {
		reference = path
	}
	return filepath.Join(filepath.Dir(base), filepath.FromSlash(strings.ReplaceAll(reference, `\`, "/"))), nil
}

// redefine takes a schema with some of its components in another form, which then has everybody who
// refers to them (XML Schema part 1, section 4.2.2). A component that cannot be redefined so is
// refused with whatever uses it, and all else compiles.
func (l *Loader) redefine(ctx context.Context, n *DocumentNode, d *schemaDocument) {
	of := l.include(ctx, n, d.target)
	for _, c := range n.Children {
		if c.Name.Space != xmlns.XSD || c.Name.Local == "annotation" {
			continue
		}
		kind, ok := kinds[c.Name.Local]
		if !ok || kind == "element" || kind == "attribute" {
			l.Set.note(problemAt(c.Place, "%s inside redefine", c.Name.Local))
			continue
		}
		key := redefinition{takenSchema{of, d.target}, globalName{kind, QName{d.target, c.Attr("name")}}}
		if was := l.redefined[key]; was != nil {
			if !alike(was, c) {
				l.Set.note(problemAt(c.Place, "%s %s is redefined again, and otherwise than at %s", c.Name.Local,
					key.what.name, was.Place))
			}
			continue
		}
		l.redefined[key] = c
		l.Set.redefine(key.what, c, d)
	}
}

// redefinition is a component of a schema that others redefine.
type redefinition struct {
	schema takenSchema
	what   globalName
}
