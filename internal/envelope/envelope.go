// Package envelope reads messages of SOAP as trees, as HTTP brings them: in the charset of their
// Content-Type, and with attachments that stand for values (XOP) in their place.
package envelope

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/textproto"
	"net/url"
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xsd"
)

// Tree is a message that was read.
type Tree struct {
	Root, Body *xsd.DocumentNode
	SOAP       int  // 11 or 12
	Fault      bool // Body has a fault
}

// Parse reads a message. Without a Content-Type it is an envelope alone. Errors name location.
func Parse(location, contentType string, text []byte) (*Tree, error) {
	kind, params, err := mime.ParseMediaType(contentType)
	var parts map[string][]byte
	if err == nil && strings.HasPrefix(kind, "multipart/") {
		var root textproto.MIMEHeader
		if text, root, parts, err = split(text, params); err != nil {
			return nil, fmt.Errorf("%s: parts of %s: %w", location, kind, err)
		}
		_, params, err = mime.ParseMediaType(root.Get("Content-Type"))
	}
	if charset := params["charset"]; err == nil && charset != "" {
		if text, err = xsd.Recode(text, charset); err != nil {
			return nil, fmt.Errorf("%s: %w", location, err)
		}
	}
	root, err := xsd.ParseMessage(location, text)
	if err != nil {
		return nil, err
	}
	t := &Tree{Root: root}
	if what := t.find(); what != "" {
		return nil, &xsd.Problem{Place: root.Place, What: what}
	}
	if parts != nil {
		err = include(t.Body, parts)
	}
	return t, err
}

// find finds Body (SOAP 1.1, section 4; SOAP 1.2 part 1, section 5), and says what is wrong.
func (t *Tree) find() (wrong string) {
	switch t.Root.Name {
	case xsd.QName{Space: xmlns.SOAP11, Local: "Envelope"}:
		t.SOAP = 11
	case xsd.QName{Space: xmlns.SOAP12, Local: "Envelope"}:
		t.SOAP = 12
	default:
		return t.Root.Name.String() + " is no envelope of SOAP 1.1 or 1.2"
	}
	space := t.Root.Name.Space
	for i, n := range t.Root.Children {
		switch n.Name {
		case xsd.QName{Space: space, Local: "Body"}:
			if t.Body != nil {
				return "the envelope has a second Body"
			}
			t.Body = n
			continue
		case xsd.QName{Space: space, Local: "Header"}:
			if i == 0 {
				continue
			}
		}
		if t.Body == nil || t.SOAP == 12 {
			return n.Name.String() + " is not expected in the envelope: Header and Body are"
		}
	}
	if t.Body == nil {
		return "the envelope has no Body"
	}
	t.Fault = len(t.Body.Children) > 0 && t.Body.Children[0].Name == xsd.QName{Space: space, Local: "Fault"}
	return ""
}

// split splits a multipart message (RFC 2387): its root, the fields of that, and the other parts by
// their Content-ID.
func split(text []byte, params map[string]string) (
	root []byte, fields textproto.MIMEHeader, parts map[string][]byte, err error,
) {
	start := strings.Trim(params["start"], "<>")
	parts = map[string][]byte{}
	for r := multipart.NewReader(bytes.NewReader(text), params["boundary"]); ; {
		part, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, nil, err
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return nil, nil, nil, err
		}
		id := strings.Trim(part.Header.Get("Content-ID"), "<>")
		if fields == nil && (start == "" || id == start) {
			root, fields = content, part.Header
			continue
		}
		parts[id] = content
	}
	if fields == nil {
		return nil, nil, nil, fmt.Errorf("none of %d has the Content-ID <%s> of the root", len(parts), start)
	}
	return root, fields, parts, nil
}

// include puts parts in base64 in the place of what refers to them (XOP, section 2.1).
func include(n *xsd.DocumentNode, parts map[string][]byte) error {
	for _, kid := range n.Children {
		if kid.Name != (xsd.QName{Space: xmlns.XOP, Local: "Include"}) {
			if err := include(kid, parts); err != nil {
				return err
			}
			continue
		}
		id, err := url.PathUnescape(strings.TrimPrefix(kid.Attr("href"), "cid:"))
		content, there := parts[id]
		if err != nil || !there {
			return &xsd.Problem{Place: kid.Place, What: fmt.Sprintf("there is no part %q", kid.Attr("href"))}
		}
		n.Text, n.Children = base64.StdEncoding.EncodeToString(content), nil
		return nil
	}
	return nil
}
