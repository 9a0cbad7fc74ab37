package schema

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/xmltext"
)

// Check compares a message with the schema and reports where it differs, at most 32 places. An
// error of code Drift means that the message is another one, or is no XML.
func (s *Schema) Check(message []byte) ([]*Error, error) {
	root, err := read(message)
	if err != nil {
		return nil, err
	}
	var child *node
	if body := root.child("Body"); body != nil && len(body.kids) == 1 {
		child = body.kids[0]
	}
	if child == nil || child.local != s.root.Name {
		return nil, notThis(s.root.Name)
	}
	c := checker{src: message}
	if header := root.child("Header"); header != nil {
		for _, h := range s.headers {
			at := slices.IndexFunc(header.kids, func(k *node) bool { return k.local == h.Name && k.mayBe(h) })
			if at >= 0 {
				c.element(h, header.kids[at], "Header/"+h.Name)
			}
		}
	}
	c.element(s.root, child, s.root.Name)
	return c.drift, nil
}

// node is an element of a message, with what a schema can describe of it.
type node struct {
	local    string
	space    string
	spaces   map[string]string // namespaces by prefix; shared with other elements
	at       int
	text     string // character data of an element without elements
	attrs    []xmltext.Attr
	kids     []*node
	textFrom int
}

// mayBe reports whether an element is in the namespace that its description states.
func (n *node) mayBe(e *Element) bool { return e.Namespace == "" || e.Namespace == n.space }

// declare takes the namespace declarations of an element that stands inside one with others.
func (n *node) declare(src []byte, prefix string, spaces map[string]string) {
	n.spaces = spaces
	own := false
	for _, a := range n.attrs {
		bound, ok := strings.CutPrefix(string(src[a.NameFrom:a.NameTo]), "xmlns")
		if !ok || bound != "" && bound[0] != ':' {
			continue
		}
		if !own {
			n.spaces, own = maps.Clone(spaces), true
			if n.spaces == nil {
				n.spaces = map[string]string{}
			}
		}
		n.spaces[strings.TrimPrefix(bound, ":")] = entities.Replace(string(src[a.ValueFrom:a.ValueTo]))
	}
	n.space = n.spaces[prefix]
}

func (n *node) child(local string) *node {
	i := slices.IndexFunc(n.kids, func(k *node) bool { return k.local == local })
	if i < 0 {
		return nil
	}
	return n.kids[i]
}

// read makes a tree of a message.
func read(message []byte) (*node, error) {
	tk := xmltext.New(message)
	top := &node{}
	open := []*node{top}
	for {
		tok, err := tk.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, &Error{Code: Drift, At: -1, What: "the message is no XML", Err: err}
		}
		n := open[len(open)-1]
		switch tok.Kind {
		case xmltext.Start, xmltext.Empty:
			if len(open) > 2*maxDepth {
				return nil, &Error{Code: TooLarge, At: -1, What: "the message is nested too deeply"}
			}
			name := string(message[tok.NameFrom:tok.NameTo])
			prefix, local, prefixed := strings.Cut(name, ":")
			if !prefixed {
				prefix, local = "", name
			}
			k := &node{
				local:    local,
				at:       tok.From,
				attrs:    slices.Clone(tk.Attrs()),
				textFrom: tok.To,
			}
			k.declare(message, prefix, n.spaces)
			n.kids = append(n.kids, k)
			if tok.Kind == xmltext.Start {
				open = append(open, k)
			}
		case xmltext.End:
			if len(open) == 1 {
				return nil, &Error{Code: Drift, At: -1, What: "the message is no XML: an end tag that nothing began"}
			}
			if len(n.kids) == 0 {
				n.text = string(message[n.textFrom:tok.From])
			}
			open = open[:len(open)-1]
		case xmltext.Text, xmltext.Comment, xmltext.Inst, xmltext.CDATA, xmltext.Doctype:
		}
	}
	if len(open) > 1 || len(top.kids) != 1 {
		return nil, &Error{Code: Drift, At: -1, What: "the message is no single XML document"}
	}
	return top.kids[0], nil
}

type checker struct {
	src   []byte
	drift []*Error
}

func (c *checker) differs(n *node, path, format string, args ...any) {
	_ = c.drifted(n, path, format, args...)
}

func (c *checker) drifted(n *node, path, format string, args ...any) *Error {
	line, column := xmltext.Position(c.src, n.at)
	e := &Error{
		Code:   Drift,
		At:     int64(n.at),
		Line:   line,
		Column: column,
		Path:   path,
		What:   fmt.Sprintf(format, args...),
	}
	if len(c.drift) < maxDrifts {
		c.drift = append(c.drift, e)
	}
	return e
}

// errCount marks a drift in the number of items of an array.
var errCount = errors.New("another number of items")

func isCount(e *Error) bool { return errors.Is(e.Err, errCount) }

func (c *checker) element(e *Element, n *node, path string) {
	if !n.mayBe(e) {
		c.differs(n, path, "in the namespace %q, where %q is described", n.space, e.Namespace)
	}
	switch {
	case e.Array:
		c.array(e, n, path)
		return
	case e.Leaf():
		c.value(e.Type, n, path)
		return
	}
	for _, d := range e.Attributes {
		at := slices.IndexFunc(n.attrs,
			func(a xmltext.Attr) bool { return string(c.src[a.NameFrom:a.NameTo]) == d.Name })
		switch {
		case at < 0:
			c.differs(n, path, "attribute %s is missing", d.Name)
		case !valid(d.Type, string(c.src[n.attrs[at].ValueFrom:n.attrs[at].ValueTo])):
			c.differs(n, path, "attribute %s is no %s", d.Name, typeName(d.Type))
		}
	}
	left := n.kids
	for _, d := range e.Children {
		at := slices.IndexFunc(left, func(k *node) bool { return k.local == d.Name })
		if at < 0 {
			c.differs(n, path, "element %s is missing, or out of order", d.Name)
			continue
		}
		for _, k := range left[:at] {
			c.differs(k, path, "element %.60s is not described here", k.local)
		}
		c.element(d, left[at], path+"/"+d.Name)
		left = left[at+1:]
	}
	for _, k := range left {
		c.differs(k, path, "element %.60s is not described here", k.local)
	}
}

func (c *checker) array(e *Element, n *node, path string) {
	if e.Items > 0 && len(n.kids) != e.Items {
		c.drifted(n, path, "%d items, %d are described", len(n.kids), e.Items).Err = errCount
	}
	for _, k := range n.kids {
		switch {
		case k.local != n.kids[0].local:
			c.differs(k, path, "items of several names")
			return
		case e.Item != "" && k.local != e.Item:
			c.differs(k, path, "items named %.60s, where %s is described", k.local, e.Item)
			return
		}
	}
	for i, k := range n.kids {
		if len(c.drift) == maxDrifts {
			return
		}
		c.value(e.Type, k, path+"/"+k.local+"["+strconv.Itoa(i+1)+"]")
	}
}

func (c *checker) value(t shape.Type, n *node, path string) {
	switch {
	case len(n.kids) > 0:
		c.differs(n, path, "has elements inside where a value of type %s is described", typeName(t))
	case !valid(t, n.text):
		c.differs(n, path, "%.40q is no %s", n.text, typeName(t))
	}
}

// valid reports whether a text is of a type, as XML Schema part 2 writes it. Every text is a
// string.
func valid(t shape.Type, text string) bool {
	if t == shape.TypeString {
		return true
	}
	text = strings.Trim(text, " \t\r\n")
	switch t {
	case shape.TypeInt, shape.TypeByte:
		bits := 32
		if t == shape.TypeByte {
			bits = 8
		}
		_, err := strconv.ParseInt(text, 10, bits)
		return err == nil
	case shape.TypeFloat:
		if text == "INF" || text == "-INF" || text == "NaN" {
			return true
		}
		f, err := strconv.ParseFloat(text, 64)
		return err == nil && !strings.ContainsAny(text, "xXpP_iInN") && !math.IsInf(f, 0)
	case shape.TypeBoolean:
		return text == "true" || text == "false" || text == "1" || text == "0"
	default:
		return false
	}
}
