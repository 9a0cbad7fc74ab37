package learn_test

import (
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/shared"
)

var update = flag.Bool("update", false, "write the vectors anew")

// Rows of a plain shape differ in nothing but types of values, and in how often what is in them
// came.
func TestRowsOfPlainShapes(t *testing.T) {
	for name, tc := range map[string]struct {
		one, other string
		same       bool
	}{
		"how many":             {"<a><r>1</r><r>2</r></a>", "<a><r>1</r><r>2</r><r>3</r></a>", true},
		"one is no array":      {"<a><r>1</r></a>", "<a><r>1</r><r>2</r></a>", false},
		"other types":          {"<a><r>1</r><r>2.5</r></a>", "<a><r>2.5</r><r>3.5</r></a>", true},
		"text":                 {"<a><r>1</r><r>b</r></a>", "<a><r>a</r><r>b</r></a>", true},
		"nothing":              {"<a><r></r><r>1</r></a>", "<a><r>1</r><r>1</r></a>", true},
		"nothing as attribute": {`<a><r i=""/><r i="1"/></a>`, `<a><r i="1"/><r i="1"/></a>`, false},
		"rows in rows": {"<a><r><s/></r><r><s/><s/></r></a>",
			"<a><r><s/><s/></r><r><s/></r><r><s/></r></a>", true},
		"white space":       {"<a>\n<r>1</r>\n<r>1</r>\n</a>", "<a>\n<r>1</r>\n<r>1</r>\n<r>1</r>\n</a>", true},
		"other white space": {"<a>\n<r>1</r> <r>1</r></a>", "<a>\n<r>1</r> <r>1</r> <r>1</r></a>", false},
		"text before":       {"<a>b<r>1</r>b<r>1</r></a>", "<a>b<r>1</r>b<r>1</r>b<r>1</r></a>", false},
		"an element more": {"<a><r><s/></r><r><s/><t/></r></a>",
			"<a><r><s/></r><r><s/><t/></r><r><s/></r></a>", false},
		"an attribute more":     {`<a><r/><r i="1"/></a>`, `<a><r/><r i="1"/><r/></a>`, false},
		"another empty element": {"<a><r/><r></r></a>", "<a><r/><r></r><r/></a>", false},
		"markup": {`<a xmlns:x="http://www.w3.org/2001/XMLSchema-instance"><r x:type="b"/><r x:type="c"/></a>`,
			`<a xmlns:x="http://www.w3.org/2001/XMLSchema-instance"><r x:type="b"/><r x:type="b"/></a>`, false},
	} {
		t.Run(name, func(t *testing.T) {
			one, err := learn.Plain([]byte(tc.one))
			require.NoError(t, err)
			other, err := learn.Plain([]byte(tc.other))
			require.NoError(t, err)
			assert.Equal(t, tc.same, one.Fingerprint() == other.Fingerprint())
		})
	}
}

// plainVector is one file of testdata/vectors/plain: a text, and the shape that both ends make of
// it.
type plainVector struct {
	What  string `json:"what"`
	Head  bool   `json:"head"`
	Text  string `json:"text"`
	Shape string `json:"shape"`
}

func (v plainVector) made() (*shape.Shape, error) {
	if v.Head {
		return learn.FromHead([]byte(v.Text))
	}
	return learn.Plain([]byte(v.Text))
}

const vectorEnvelope = `<?xml version="1.0" encoding="utf-8"?>` +
	`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>`

func TestPlainVectors(t *testing.T) {
	dir := shared.Testdata(t, "vectors", "plain")
	if *update {
		for name, v := range map[string]plainVector{
			"head.json": {What: "a head", Head: true,
				Text: "POST /pump HTTP/1.1\r\nHost: pump.example\r\nContent-Length: 312\r\n\r\n"},
			"values.json": {What: "a value of each type, and one of none", Text: vectorEnvelope +
				`<m:a xmlns:m="urn:m" id="17"><n>-3</n><d>12.50</d><b>true</b><f>1.5E-3</f>` +
				`<t>2026-11-27T01:40:00.5Z</t><u>urn:uuid:6f1c3c62-9d0f-4c5e-8a55-0f2d6f0e7b41</u>` +
				`<o>AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=</o><w>some words</w><e/><z></z>` +
				"</m:a></s:Body></s:Envelope>"},
			"rows.json": {What: "rows that are alike are an array", Text: vectorEnvelope +
				"<r>\n<i><k>1</k><v>a</v></i>\n<i><k>2</k><v>b</v></i>\n</r></s:Body></s:Envelope>"},
			"unlike.json": {What: "rows that differ are written out", Text: vectorEnvelope +
				"<r><i><k>1</k></i><i><k>2</k><v>b</v></i></r></s:Body></s:Envelope>"},
		} {
			made, err := v.made()
			require.NoError(t, err)
			v.Shape = hex.EncodeToString(made.Octets())
			out, err := json.MarshalIndent(v, "", "  ")
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), append(out, '\n'), 0o644))
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 4)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			b, err := os.ReadFile(file)
			require.NoError(t, err)
			var v plainVector
			require.NoError(t, json.Unmarshal(b, &v))
			made, err := v.made()
			require.NoError(t, err)
			assert.Equal(t, v.Shape, hex.EncodeToString(made.Octets()))
		})
	}
}
