package negotiate

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/soap"
)

// CheckHeader refuses what cannot be an unchanging header: text that is not exactly one header
// block, as it stands in messages; and a block that may hold a secret or a part of a signature,
// because contexts are kept in stores. Errors: BadConfig.
func CheckHeader(block string) error {
	if err := checkHeader(block); err != nil {
		return &Error{Code: BadConfig, At: -1, Err: err}
	}
	return nil
}

func checkHeader(block string) error {
	if len(block) > maxHeader {
		return fmt.Errorf("header block of %d bytes, at most %d are allowed", len(block), maxHeader)
	}
	el, err := soap.ParseElement([]byte(block), soap.Limits{MaxBytes: maxHeader, MaxDepth: 16, MaxElements: 256})
	if err != nil {
		return fmt.Errorf("header block %.60q: %w", block, err)
	}
	if el.Name.Space == "" {
		return fmt.Errorf("header block %s has no namespace", el.Name)
	}
	return checkTokens(block, el.Name)
}

// checkTokens checks all names in a block, and that it is one element and nothing else.
func checkTokens(block string, name soap.Name) error {
	d := xml.NewDecoder(strings.NewReader(block))
	declared := map[string]bool{}
	for depth := 0; ; {
		at := d.InputOffset()
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("header block %s: %w", name, err)
		}
		switch t := t.(type) {
		case xml.StartElement:
			if depth++; depth == 1 && at != 0 {
				return fmt.Errorf("header block %s does not begin with its tag", name)
			}
			if err := checkNames(t, declared); err != nil {
				return fmt.Errorf("header block %s: %w", name, err)
			}
		case xml.EndElement:
			if depth--; depth == 0 && d.InputOffset() != int64(len(block)) {
				return fmt.Errorf("header block %s does not end with its tag", name)
			}
		}
	}
}

// checkNames refuses names of security, and those whose namespace is declared elsewhere.
func checkNames(t xml.StartElement, declared map[string]bool) error {
	for _, a := range t.Attr {
		if a.Name.Space == "xmlns" || a.Name == (xml.Name{Local: "xmlns"}) {
			declared[a.Value] = true
		}
	}
	names := []xml.Name{t.Name}
	for _, a := range t.Attr {
		names = append(names, a.Name)
	}
	for _, n := range names {
		switch {
		case slices.Contains(secured, n.Space):
			return fmt.Errorf("{%s}%s may hold a secret, or be part of a signature", n.Space, n.Local)
		case n.Space != "" && n.Space != "xmlns" && n.Space != xmlns.XML && !declared[n.Space]:
			return fmt.Errorf("the prefix of %s:%s is not declared in it", n.Space, n.Local)
		}
	}
	return nil
}

// IsSecured reports whether an element, or an attribute of it, is of a namespace of security: such
// elements never enter a context.
func IsSecured(t xml.StartElement) bool {
	return slices.Contains(secured, t.Name.Space) ||
		slices.ContainsFunc(t.Attr, func(a xml.Attr) bool { return slices.Contains(secured, a.Name.Space) })
}

// ParseHeaderName reads the name of a header block, {namespace}local, that may enter a context: it
// is none of security. Errors: BadConfig.
func ParseHeaderName(text string) (soap.Name, error) {
	space, local, ok := strings.Cut(strings.TrimPrefix(text, "{"), "}")
	if !ok || !strings.HasPrefix(text, "{") || space == "" || local == "" || strings.ContainsAny(local, "{}:") {
		return soap.Name{}, BadConfigf("%.120q is not {namespace}name", text)
	}
	if slices.Contains(secured, space) {
		return soap.Name{}, BadConfigf("%.120s may hold a secret, or be part of a signature", text)
	}
	return soap.Name{Space: space, Local: local}, nil
}

// secured are namespaces whose names an unchanging header must not contain.
var secured = []string{xmlns.WSSE, xmlns.WSSE11, xmlns.WSU, xmlns.DS, xmlns.XENC, xmlns.SAML11, xmlns.SAML20}

// CheckHeaders refuses blocks that cannot be unchanging headers, and too many.
func CheckHeaders(blocks []string) error {
	if len(blocks) > maxChoices {
		return fmt.Errorf("%d header blocks, at most %d are allowed", len(blocks), maxChoices)
	}
	for _, b := range blocks {
		if err := checkHeader(b); err != nil {
			return err
		}
	}
	return nil
}

func (w *documentWriter) headers(blocks []string) {
	if err := CheckHeaders(blocks); err != nil && w.err == nil {
		w.err = err
	}
	for _, b := range blocks {
		w.children = append(w.children, soap.Element{Name: w.name("UnchangingHeader"), Text: b})
	}
}

func (r *documentReader) headers() (blocks []string) {
	for _, c := range r.all("UnchangingHeader", maxChoices) {
		if len(c.Text) > maxHeader || c.Text == "" || len(c.Children) > 0 {
			r.fail("UnchangingHeader of %d bytes, 1 to %d are allowed, as text", len(c.Text), maxHeader)
			return nil
		}
		blocks = append(blocks, c.Text)
	}
	return blocks
}

// count reads the number in an element that may be there; 0 if it is not.
func (r *documentReader) count(local string, most int) int {
	v := r.optional(local)
	if v == "" {
		return 0
	}
	n, err := strconv.ParseUint(v, 10, 16)
	if err != nil || n > uint64(most) || strconv.FormatUint(n, 10) != v {
		r.fail("%s %.20q is not between 0 and %d", local, v, most)
	}
	return int(n)
}
