package inspector

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/hhfr/hhfr/internal/xmltext"
)

// TreeRow is a row of a tree: an element with its text, an attribute, or other text. Texts are as
// they stand in the document.
type TreeRow struct {
	Depth int
	Text  string
	// End is the index of the first row that is not below this one.
	End int
}

// mostNodes bounds the rows of a tree.
const mostNodes = 200_000

// Tree makes rows of a document, each element before what it contains. For a document that is not
// well-formed it returns the rows up to the place, with the error.
func Tree(doc []byte) ([]TreeRow, error) {
	t := &treeBuilder{doc: doc}
	tokens := xmltext.New(doc)
	for len(t.rows) < mostNodes {
		tok, err := tokens.Next()
		if err != nil {
			t.close(0)
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return t.rows, err
		}
		t.take(tok, tokens.Attrs())
	}
	t.close(0)
	return t.rows, fmt.Errorf("the tree ends after %d rows", mostNodes)
}

// tree is one that grows.
type treeBuilder struct {
	doc  []byte
	rows []TreeRow
	open []int // rows of the elements that are open
}

func (t *treeBuilder) take(tok xmltext.Token, attrs []xmltext.Attr) {
	text := string(t.doc[tok.From:tok.To])
	switch tok.Kind {
	case xmltext.Start, xmltext.Empty:
		t.add(string(t.doc[tok.NameFrom:tok.NameTo]))
		t.open = append(t.open, len(t.rows)-1)
		for _, a := range attrs {
			t.add("@" + string(t.doc[a.NameFrom:a.NameTo]) + " = " + string(t.doc[a.ValueFrom:a.ValueTo]))
		}
		if tok.Kind == xmltext.Empty {
			t.close(len(t.open) - 1)
		}
	case xmltext.End:
		t.close(max(len(t.open)-1, 0))
	case xmltext.Text, xmltext.CDATA:
		text = strings.Trim(text, " \t\r\n")
		switch last := len(t.rows) - 1; {
		case text == "":
		case len(t.open) > 0 && t.open[len(t.open)-1] == last:
			t.rows[last].Text += " = " + text
		default:
			t.add(text)
		}
	default:
		t.add(text)
	}
}

func (t *treeBuilder) add(text string) {
	t.rows = append(t.rows, TreeRow{Depth: len(t.open), Text: text, End: len(t.rows) + 1})
}

// close ends all open elements but so many.
func (t *treeBuilder) close(remaining int) {
	for ; len(t.open) > remaining; t.open = t.open[:len(t.open)-1] {
		t.rows[t.open[len(t.open)-1]].End = len(t.rows)
	}
}
