package gocode_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/gocode"
	"github.com/hhfr/hhfr/internal/wsdl"
)

// FuzzGenerate: whatever a WSDL says, what comes of it is Go, as gofmt has it.
func FuzzGenerate(f *testing.F) {
	for _, name := range []string{"stock.wsdl", filepath.Join("odd", "odd.wsdl")} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(f, err)
		f.Add(string(text))
	}
	f.Add(operation(`<xs:complexType><xs:choice maxOccurs="2"><xs:any/><xs:sequence><xs:element ref="t:Do"/>`+
		`</xs:sequence></xs:choice><xs:anyAttribute/></xs:complexType>`, ""))
	f.Fuzz(func(t *testing.T, text string) {
		d, err := wsdl.Parse(t.Context(), []byte(text))
		if err != nil {
			return
		}
		formed(t, d, gocode.GoOptions{Package: "service"})
	})
}
