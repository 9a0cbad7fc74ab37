package xpath_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/xpath"
)

const message = `<?xml version="1.0"?><s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/">` +
	`<s:Body><m:order xmlns:m="urn:shop" id="7"><item>pen &amp; ink</item><item n="2">paper</item>` +
	`<total>12.50</total>` +
	`</m:order></s:Body></s:Envelope>`

func TestHolds(t *testing.T) {
	for expression, want := range map[string]bool{
		"//order":                                         true,
		"/Envelope/Body/order":                            true,
		"//invoice":                                       false,
		"//order[@id='7']":                                true,
		"//order[@id=8]":                                  false,
		"//item = 'paper'":                                true,
		"//item[.='pen & ink']":                           true,
		"//item[2]/@n":                                    true,
		"//item[1]/@n":                                    false,
		"contains(//order, 'ink')":                        true,
		"count(//item) > 1":                               true,
		"count(//item) - 2":                               false,
		"//total > 12 and //total < 13":                   true,
		"not(//item[3])":                                  true,
		"string(//nothing)":                               false,
		"namespace-uri(//order) = 'urn:shop'":             true,
		"//item/following-sibling::total":                 true,
		"//total/preceding-sibling::item[@n]":             true,
		"//total/ancestor::Body":                          true,
		"//item/text()[starts-with(., 'pap')]":            true,
		"local-name(/*) = 'Envelope'":                     true,
		"//*[local-name()='order']/@*[.='7']":             true,
		"sum(//total) = 12.5":                             true,
		"//order/item[last()] = 'paper'":                  true,
		"//order/../../Body/order/item[@n]/parent::order": true,
	} {
		e, err := xpath.Compile(expression)
		require.NoError(t, err, expression)
		for range 2 { // an expression is used again
			got, err := e.Holds([]byte(message))
			require.NoError(t, err, expression)
			assert.Equal(t, want, got, expression)
		}
	}
}

func TestWhatDoesNotCompile(t *testing.T) {
	for _, expression := range []string{
		"", "//", "//order[", "m:order", "//m:order", "$x", "nothing()", "//order[@id=", "'", ")",
		strings.Repeat("/a", 3000),
		strings.Repeat("(", 2000), strings.Repeat("[", 2000), "count()", "//order/following::",
	} {
		_, err := xpath.Compile(expression)
		assert.Error(t, err, "%.40q", expression)
	}
}

func TestWhatIsNoDocument(t *testing.T) {
	e, err := xpath.Compile("//a")
	require.NoError(t, err)
	for _, doc := range []string{"", "<a>", "text", `<!DOCTYPE a><a/>`, "\x00"} {
		_, err := e.Holds([]byte(doc))
		assert.Error(t, err, doc)
	}
}

// TestStepsAreBounded has an expression whose time grows with a high power of the size of the
// document.
func TestStepsAreBounded(t *testing.T) {
	doc := strings.Repeat("<a>", 500) + strings.Repeat("</a>", 500)
	for _, expression := range []string{
		"//a//a//a//a//a//b",
		"count(//*[count(//*[count(//*) > 1]) > 1]) > 1", "//a[count(.//a[contains(., 'x')]) > 0]",
	} {
		e, err := xpath.Compile(expression)
		require.NoError(t, err)
		_, err = e.Holds([]byte(doc))
		assert.ErrorIs(t, err, xpath.ErrSteps, expression)
	}
}

func FuzzHolds(f *testing.F) {
	f.Add("//order[@id='7']/item[2]", message)
	f.Add("count(//item) > 1 and not(contains(/, 'x'))", message)
	f.Add("//*[local-name()='a']/ancestor-or-self::*[last()]/@x | //b", "<a><b x='1'/>t</a>")
	f.Fuzz(func(_ *testing.T, expression, doc string) {
		if len(expression) > 200 || len(doc) > 2000 {
			return
		}
		if e, err := xpath.Compile(expression); err == nil {
			_, _ = e.Holds([]byte(doc))
		}
	})
}
