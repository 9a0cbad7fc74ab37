package wsdl

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xsd"
)

// SourceOptions say where descriptions may come from.
type SourceOptions struct {
	// Fetch: documents that a description imports may be fetched from other machines. The
	// description itself may always be a URL, with what it imports from the same origin.
	Fetch bool
	// Catalog is a file that says where documents are that are named otherwise (OASIS XML
	// Catalogs); empty: none.
	Catalog string
	// Annotations are namespaces of whose elements declaration and binding one in a binding
	// declares streams, as those of hhfr do (docs/negotiation.md, section 6.4).
	Annotations []string
	// Client fetches documents; nil: one with the defaults of net/http.
	Client *http.Client
	// Operation: operations of this name alone are compiled, and there are no others; empty: all.
	Operation string
	// Texts: the description has its documents for [ServiceDescription.Text].
	Texts bool
}

// standards are schemas of standards that descriptions import without saying where they are, or
// from where they cannot be had. They are written here, as far as descriptions use them.
//
//go:embed known/*.xsd known/*.wsdl
var standards embed.FS

// documentSource opens the documents of one description.
type documentSource struct {
	opt     SourceOptions
	root    string // location of the description
	text    []byte // its text; nil: it is read
	catalog *catalog
	// beside has the files beside the description by namespace; nil: not yet looked at.
	beside map[string][]string
	texts  []sourceText // with [SourceOptions].Texts
}

// standardFiles are their files by namespace: SOAP envelopes; types of Axis 1; MIME types of binary
// data (W3C note of 4 May 2005); XOP (W3C, 25 January 2005); WS-Addressing 1.0 (W3C, 9 May 2006);
// WS-Resource and WS-BaseFaults 1.2, WS-BaseNotification and WS-Topics 1.3 (OASIS, 2006).
var standardFiles = map[string]string{
	xmlns.SOAP11: "soap11.xsd", xmlns.SOAP12: "soap12.xsd", xmlns.WSA: "wsa.xsd",
	"http://xml.apache.org/xml-soap":        "xml-soap.xsd",
	"http://www.w3.org/2005/05/xmlmime":     "xmlmime.xsd",
	"http://www.w3.org/2004/08/xop/include": "xop.xsd",
	"http://docs.oasis-open.org/wsrf/bf-2":  "wsrf-bf.xsd",
	"http://docs.oasis-open.org/wsrf/r-2":   "wsrf-r.xsd",
	"http://docs.oasis-open.org/wsrf/rw-2":  "wsrf-rw.wsdl",
	"http://docs.oasis-open.org/wsn/b-2":    "wsn-b.xsd",
	"http://docs.oasis-open.org/wsn/t-1":    "wsn-t.xsd",
	"http://docs.oasis-open.org/wsn/bw-2":   "wsn-bw.wsdl",
}

const (
	fetchTimeout = 30 * time.Second
	maxRedirects = 5
	// maxBeside is how many files beside a description are looked at for namespaces, and
	// startOfFile how much of each, in bytes.
	maxBeside   = 1000
	startOfFile = 64 << 10
)

// NotFetched is what problems say of documents that [SourceOptions].Fetch would fetch.
const NotFetched = "documents of other machines are fetched only when that is asked for"

var errNoFetch = errors.New(NotFetched)

func isRemote(location string) bool {
	return strings.HasPrefix(location, "http://") || strings.HasPrefix(location, "https://")
}

// open returns the text of a document.
func (s *documentSource) open(ctx context.Context, location string) ([]byte, error) {
	text, err := s.read(ctx, location)
	if err == nil && s.opt.Texts && !strings.HasPrefix(location, xsd.Standard) {
		s.texts = append(s.texts, sourceText{location, text})
	}
	return text, err
}

func (s *documentSource) read(ctx context.Context, location string) ([]byte, error) {
	switch name, ok := strings.CutPrefix(location, xsd.Standard); {
	case s.text != nil && location == s.root:
		return s.text, nil
	case ok:
		return standards.ReadFile(path.Join("known", name))
	case s.text != nil:
		return nil, fs.ErrNotExist
	case isRemote(location) && (s.opt.Fetch || originOf(location) == originOf(s.root)):
		return s.fetch(ctx, location)
	case isRemote(location):
		return nil, errNoFetch
	case isRemote(s.root) && !s.catalog.has(location):
		return nil, fmt.Errorf("%s is a file, which a document of another machine cannot import", location)
	}
	return readFile(location)
}

// originOf is scheme, host and port of a URL; for a file its path, which no URL is.
func originOf(location string) string {
	u, err := url.Parse(location)
	if err != nil || !isRemote(location) {
		return location
	}
	return strings.ToLower(u.Scheme + "://" + u.Host)
}

func readFile(location string) ([]byte, error) {
	f, err := os.Open(location)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, xsd.MaxDocument+1))
	return text, errors.Join(err, f.Close())
}

func (s *documentSource) fetch(ctx context.Context, location string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, location, nil)
	if err != nil {
		return nil, err
	}
	client := http.Client{}
	if s.opt.Client != nil {
		client = *s.opt.Client
	}
	client.CheckRedirect = func(to *http.Request, via []*http.Request) error {
		switch {
		case len(via) >= maxRedirects:
			return fmt.Errorf("more than %d redirections", maxRedirects)
		case location != s.root && !s.opt.Fetch && originOf(to.URL.String()) != originOf(s.root):
			return errNoFetch
		}
		return nil
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: HTTP status %s", location, resp.Status)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, xsd.MaxDocument+1))
	if err != nil {
		return nil, err
	}
	_, params, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil { // the document itself says more
		return text, nil
	}
	return xsd.Recode(text, params["charset"])
}

// known are the locations of documents of a namespace: that of the catalog, files beside the
// description, then those of standards.
func (s *documentSource) known(space string) []string {
	if s.beside == nil {
		s.beside = map[string][]string{}
		if !isRemote(s.root) {
			s.lookBeside(filepath.Dir(s.root))
		}
	}
	var list []string
	if at := s.catalog.find(space); at != "" {
		list = append(list, at)
	}
	list = append(list, s.beside[space]...)
	if name, ok := standardFiles[space]; ok {
		list = append(list, xsd.Standard+name)
	}
	return list
}

// targetOf finds the namespace of a document at its beginning.
var targetOf = regexp.MustCompile(
	`<(?:[\w.-]+:)?(?:schema|definitions)\s[^>]*?\btargetNamespace\s*=\s*["']([^"']*)["']`,
)

// lookBeside notes the namespaces of the files in a folder.
func (s *documentSource) lookBeside(folder string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return // the description itself could be read, so there is nothing else to say
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		ext := strings.ToLower(filepath.Ext(e.Name()))
		return !e.Type().IsRegular() || ext != ".xsd" && ext != ".wsdl"
	})
	for _, e := range entries[:min(len(entries), maxBeside)] {
		at := filepath.Join(folder, e.Name())
		if at == filepath.Clean(s.root) {
			continue
		}
		if m := targetOf.FindSubmatch(beginning(at)); m != nil {
			s.beside[string(m[1])] = append(s.beside[string(m[1])], at)
		}
	}
}

func beginning(file string) []byte {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, startOfFile))
	if err != nil {
		return nil
	}
	return text
}
