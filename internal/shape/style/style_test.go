package style_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/shape/style"
)

const (
	soap = "http://schemas.xmlsoap.org/soap/envelope/"
	sums = "urn:example:sums"
)

// own is the own shape of a message with one element inside another in Body.
func own(t testing.TB) *shape.Shape {
	b := shape.NewBuilder()
	tag := func(slot int64, space, local string, inside func()) {
		b.Begin(shape.Element)
		b.Text("<")
		b.Slot(slot)
		b.Text(":" + local)
		if space != "" {
			b.Begin(shape.Attribute)
			b.Text(" xmlns:")
			b.Slot(slot)
			b.Text(`="` + space + `"`)
			b.End()
		}
		b.Text(">")
		inside()
		b.Text("</")
		b.Slot(slot)
		b.Text(":" + local + ">")
		b.End()
	}
	tag(0, soap, "Envelope", func() {
		tag(0, "", "Body", func() {
			tag(1, sums, "add", func() {
				b.Begin(shape.Array)
				tag(1, "", "n", func() { b.Value(shape.TypeInt, shape.UntilTag) })
				b.End()
			})
		})
	})
	s, err := b.Shape()
	require.NoError(t, err)
	return s
}

// written are messages in several styles, with a line for each element where there is white space.
var written = map[string]string{
	"s:a": `<s:Envelope xmlns:s="` + soap + `"><s:Body><a:add xmlns:a="` + sums +
		`"><a:n>1</a:n><a:n>2</a:n></a:add></s:Body></s:Envelope>`,
	"s:": `<s:Envelope xmlns:s="` + soap + `"><s:Body><add xmlns="` + sums +
		`"><n>1</n><n>2</n></add></s:Body></s:Envelope>`,
	"s:*": `<s:Envelope xmlns:s="` + soap + `"><s:Body><ns1:add xmlns:ns1="` + sums +
		`"><ns1:n>1</ns1:n><ns1:n>2</ns1:n></ns1:add></s:Body></s:Envelope>`,
	":;\n  ": `<Envelope xmlns="` + soap + `">
  <Body>
    <add xmlns="` + sums + `">
      <n>1</n>
      <n>2</n>
    </add>
  </Body>
</Envelope>`,
}

// An own shape in the style of a message is the shape of that message.
func TestStyles(t *testing.T) {
	for text, message := range written {
		for _, line := range []string{"\n", "\r\n"} {
			text, message := strings.ReplaceAll(text, "\n", line), strings.ReplaceAll(message, "\n", line)
			learned, err := learn.FromMessage([]byte(message))
			require.NoError(t, err)
			found := style.Of(own(t), learned)
			assert.Equal(t, text, found.Text())
			back, err := style.Parse(text)
			require.NoError(t, err)
			styled, err := back.Apply(own(t))
			require.NoError(t, err)
			assert.Equal(t, string(learned.Octets()), string(styled.Octets()), "%q", text)
		}
	}
}

// What a style says of nothing, or says wrongly, is an error, and what it adds is bounded.
func TestStylesThatAreNone(t *testing.T) {
	for _, text := range []string{"a;", "a;x", "a;\nx", "a b", "<", strings.Repeat("a", style.MaxText+1)} {
		_, err := style.Parse(text)
		assert.Error(t, err, "%q", text)
	}
}

func FuzzStyle(f *testing.F) {
	for text := range written {
		f.Add(text)
	}
	f.Add(":::::;\n" + strings.Repeat("\t", 200))
	base := own(f)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := style.Parse(text)
		if err != nil {
			return
		}
		assert.Equal(t, text, s.Text())
		if styled, err := s.Apply(base); err == nil {
			assert.LessOrEqual(t, len(styled.Octets()), len(base.Octets())+64<<10+32*style.MaxText)
		}
	})
}
