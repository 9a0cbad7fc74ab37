package xsd_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/xsd"
)

// Whatever a document says, it compiles in bounded time or is refused, and what compiled has one
// canonical form and can be printed.
func FuzzSchema(f *testing.F) {
	f.Add([]byte(schema(target, base)))
	f.Add([]byte(schema(target, `<xs:element name="e" type="t:tree"/><xs:complexType name="tree"><xs:sequence>`+
		`<xs:element name="c" type="t:tree" minOccurs="0"/></xs:sequence></xs:complexType>`)))
	f.Add([]byte(schema(target, `<xs:redefine schemaLocation="a.xsd"><xs:group name="g"/></xs:redefine>`)))
	seeds, err := filepath.Glob(filepath.Join("..", "wsdl", "known", "*.xsd"))
	require.NoError(f, err)
	require.NotEmpty(f, seeds)
	for _, seed := range seeds {
		text, err := os.ReadFile(seed)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 64<<10 {
			return
		}
		l := &xsd.Loader{Set: xsd.NewSet(), Open: files{"a.xsd": string(text)}.open}
		root, err := l.Document(t.Context(), "a.xsd")
		if err != nil {
			return
		}
		l.Schema(t.Context(), root, "")
		for _, n := range l.Set.Elements() {
			e := l.Set.Element(n)
			var reach xsd.Reach
			reach.Element(e)
			var out bytes.Buffer
			require.NoError(t, xsd.Tree(&out, e))
			require.Equal(t, xsd.Canonical(e), xsd.Canonical(e))
			require.Empty(t, xsd.Difference(e, e))
		}
	})
}
