package values_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/values"
	"github.com/hhfr/hhfr/internal/wsdl"
	"github.com/hhfr/hhfr/internal/xsd"
)

// TestSamplesOfTheCorpus: the messages of every operation of every WSDL there have samples that are
// as described, and their values come back from JSON to the same message.
func TestSamplesOfTheCorpus(t *testing.T) {
	dir := shared.Dir(t, "corpus")
	files := shared.Files(t, dir, func(p string) bool { return filepath.Ext(p) == ".wsdl" })
	messages, without, every := 0, 0, 1
	if shared.Raced || testing.Short() {
		every = 20
	}
	for _, file := range files {
		d, err := wsdl.Load(t.Context(), file, wsdl.SourceOptions{})
		if err != nil {
			continue
		}
		for _, op := range d.Operations {
			if len(op.Problems) > 0 {
				continue
			}
			for _, m := range []*wsdl.EnvelopeParts{op.Input, op.Output} {
				if m == nil {
					continue
				}
				if messages++; messages%every != 0 {
					continue
				}
				tr := values.New(d.Set(), m.Contents(), op.SOAP)
				text, err := tr.Sample(uint64(messages % 3))
				if err != nil {
					without++
					t.Logf("%s: %s: %v", filepath.Base(file), op.Name, err)
					continue
				}
				comesBack(t, tr, text, file+" "+op.Name)
			}
		}
	}
	t.Logf("%d messages, %d without samples", messages, without)
	assert.Greater(t, messages, 10_000)
	assert.Zero(t, without)
}

// comesBack compares a message with what its values in JSON give.
func comesBack(t *testing.T, tr *values.Translator, text []byte, of string) {
	root, err := xsd.ParseMessage("sample", text)
	require.NoError(t, err, of)
	body := root.Children[len(root.Children)-1]
	written, err := tr.Read(body).MarshalJSON()
	require.NoError(t, err, of)
	v, err := values.ParseJSON("json", written)
	require.NoError(t, err, "%s: %s", of, written)
	again, err := tr.Write(v, "")
	if !assert.NoError(t, err, "%s: %s\n%s", of, text, written) {
		return
	}
	back, err := xsd.ParseMessage("again", again)
	require.NoError(t, err, of)
	read := back.Children[len(back.Children)-1]
	equal(t, body, read, of)
	same, err := tr.Read(read).MarshalJSON()
	require.NoError(t, err, of)
	assert.Equal(t, string(written), string(same), of)
}

func equal(t *testing.T, a, b *xsd.DocumentNode, of string) {
	if !assert.Equal(t, a.Name, b.Name, of) || !assert.Len(t, b.Children, len(a.Children), "%s: %s", of, a.Name) {
		return
	}
	for i := range a.Children {
		equal(t, a.Children[i], b.Children[i], of)
	}
}
