package negotiate

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/pkg/schema"
	"github.com/hhfr/hhfr/pkg/soap"
)

// URI names what is described. Errors: Malformed, for an invalid schema or shape.
func (d *Description) URI() (string, error) {
	switch {
	case d.Fingerprint != "":
		return d.Fingerprint, checkFingerprint(d.Fingerprint)
	case d.Shape != nil:
		s, err := shape.Parse(d.Shape)
		if err != nil {
			return "", AsMalformed(err)
		}
		return s.Fingerprint().URI(), nil
	}
	s, err := schema.Parse([]byte(d.Schema))
	if err != nil {
		return "", AsMalformed(err)
	}
	return s.URI(), nil
}

func checkFingerprint(uri string) error {
	digits, ok := strings.CutPrefix(uri, schema.URIPrefix)
	if !ok {
		digits, ok = strings.CutPrefix(uri, shape.URIPrefix)
	}
	if !ok || len(digits) != 64 || strings.Trim(digits, "0123456789abcdef") != "" {
		return AsMalformed(fmt.Errorf("%.120q names neither a schema nor a shape", uri))
	}
	return nil
}

// Describe returns a schema as an offer or answer has it; nil for none.
func Describe(s *schema.Schema) *Description {
	if s == nil {
		return nil
	}
	return &Description{Schema: s.String()}
}

func (w *documentWriter) description(local string, d *Description) {
	if d == nil {
		return
	}
	el := soap.Element{Name: w.name(local)}
	switch {
	case d.Fingerprint != "":
		if err := checkFingerprint(d.Fingerprint); err != nil && w.err == nil {
			w.err = fmt.Errorf("%s: %w", local, err)
		}
		el.Children = []soap.Element{{Name: w.name("Fingerprint"), Text: d.Fingerprint}}
	case d.Shape != nil:
		el.Children = []soap.Element{{Name: w.name("Shape"), Text: base64.StdEncoding.EncodeToString(d.Shape)}}
	default:
		if len(d.Schema) > schema.MaxSchema && w.err == nil {
			w.err = fmt.Errorf("%s: a schema of %d bytes, at most %d are allowed", local, len(d.Schema),
				schema.MaxSchema)
		}
		el.Children = []soap.Element{{Name: w.name("Schema"), Text: d.Schema}}
	}
	w.children = append(w.children, el)
}

// description reads the one description of a direction; nil if there is none. It does not check
// what is described.
func (r *documentReader) description(local string) *Description {
	found := r.all(local, 1)
	if len(found) == 0 {
		return nil
	}
	var d *Description
	for i := range found[0].Children {
		c := &found[0].Children[i]
		if c.Name.Space != r.el.Name.Space {
			continue
		}
		var read *Description
		var err error
		switch c.Name.Local {
		case "Schema":
			read = &Description{Schema: c.Text}
			if len(c.Text) > schema.MaxSchema || strings.TrimSpace(c.Text) == "" {
				err = fmt.Errorf("a schema of %d bytes", len(c.Text))
			}
		case "Shape":
			read = &Description{}
			read.Shape, err = base64.StdEncoding.Strict().DecodeString(strings.Join(strings.Fields(c.Text), ""))
			if err == nil && len(read.Shape) == 0 {
				err = errors.New("an empty shape")
			}
		case "Fingerprint":
			read = &Description{Fingerprint: strings.TrimSpace(c.Text)}
			err = checkFingerprint(read.Fingerprint)
		default:
			continue
		}
		switch {
		case err != nil:
			r.fail("%s: %w", local, err)
		case d != nil:
			r.fail("%s has several descriptions", local)
		}
		d = read
	}
	if d == nil {
		r.fail("%s describes nothing", local)
	}
	return d
}

// Name returns the URI of what is described, "" if nothing is.
func (d *Description) Name() string {
	if d == nil {
		return ""
	}
	uri, err := d.URI()
	if err != nil {
		return ""
	}
	return uri
}
