package typed_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/transcode"
	"github.com/hhfr/hhfr/internal/typed"
	"github.com/hhfr/hhfr/internal/wsdl"
)

func load(t *testing.T, file string) *typed.Contract {
	d, err := wsdl.Load(t.Context(), file, wsdl.SourceOptions{})
	require.NoError(t, err)
	return typed.New(d)
}

// changed is a file of testdata with another text in it.
func changed(t *testing.T, name, old, new string) (file string) {
	text, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	require.Contains(t, string(text), old)
	file = filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), old, new, 1)), 0o600))
	return file
}

func orders(t *testing.T) *typed.Contract { return load(t, filepath.Join("testdata", "orders.wsdl")) }

// order is a message of orders.wsdl with this inside, and a number of lines.
func order(inside string, lines int) string {
	b := `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>` +
		`<PlaceOrder xmlns="urn:example:orders" priority="2"><customerNumber>4711</customerNumber>` + inside
	for i := range lines {
		b += fmt.Sprintf("<orderLine><articleNumber>A-%d</articleNumber><quantity>%d</quantity></orderLine>", i, i)
	}
	return b + `</PlaceOrder></s:Body></s:Envelope>`
}

// figures packs messages as one stream, each of which comes back, or packing fails.
func figures(t *testing.T, c *typed.Contract, messages ...string) (list []transcode.Figures) {
	cfg := transcode.Config{}
	if c != nil {
		cfg.Description = c
	}
	seq := func(yield func(transcode.Packable, error) bool) {
		for _, m := range messages {
			if !yield(transcode.Packable{Body: strings.NewReader(m)}, nil) {
				return
			}
		}
	}
	_, err := transcode.Pack(t.Context(), &strings.Builder{}, seq, cfg, func(f transcode.Figures) error {
		list = append(list, f)
		return nil
	})
	require.NoError(t, err)
	return list
}

func sum(list []transcode.Figures, of func(transcode.Figures) int64) (n int64) {
	for _, f := range list {
		n += of(f)
	}
	return n
}

func widened(f transcode.Figures) int64 { return f.Widened }
func size(f transcode.Figures) int64    { return f.Shape + f.Content }
func drifted(f transcode.Figures) int64 { return f.Drifted }
func rare(f transcode.Figures) int64    { return f.Exceptions }

const (
	when  = "<requestedDelivery>2026-11-22T23:45:00Z</requestedDelivery>"
	where = "<deliveryAddress>Main Street 1</deliveryAddress>"
)

// What may be absent and what may repeat is known when a second message differs from the first: the
// shape widens once, for all that the schema says. Without it one part after the other is text.
func TestShapesWidenOnce(t *testing.T) {
	various := []string{
		order(when+where, 1), order(where, 1), order(when, 1), order(when+where, 3), order("", 2), order(when+where, 1),
	}
	with, without := figures(t, orders(t), various...), figures(t, nil, various...)
	assert.EqualValues(t, 1, sum(with, widened))
	assert.Less(t, sum(with, size), sum(without, size)*6/10)
	assert.Zero(t, sum(with, drifted))
}

// Types are the schema's: a value that looks otherwise in the first message costs no exception in
// the next.
func TestTypesComeFromTheSchema(t *testing.T) {
	empty := strings.Replace(order(when, 1), ">4711<", "><", 1)
	with := figures(t, orders(t), empty, order(when, 1), order(when, 1))
	assert.Zero(t, sum(with[1:], widened))
	assert.Zero(t, sum(with[1:], rare))
}

// A message that breaks its schema comes back, and is counted: also the second one like it, which
// fits the shape of the first.
func TestBrokenMessagesAreCounted(t *testing.T) {
	swapped := order(where+when, 1)
	no := strings.Replace(order(when, 1), ">4711<", ">none<", 1)
	for name, messages := range map[string][]string{
		"another order": {swapped, swapped}, "no number": {no, no}, "after others": {order(when, 1), no, no},
		"too much": {strings.Replace(order(when, 1), "</PlaceOrder>", "<extra/></PlaceOrder>", 1), no},
	} {
		assert.EqualValues(t, 2, sum(figures(t, orders(t), messages...), drifted), name)
	}
	assert.Zero(t, sum(figures(t, orders(t), order(when, 1), "<other/>", "no XML"), drifted))
}

// The own shape of an operation is the same whatever else its WSDL describes, and types that
// contain themselves, or many elements, come to an end.
func TestOwnShapesAreBounded(t *testing.T) {
	var more, wide strings.Builder
	for i := range 500 {
		fmt.Fprintf(&more, `<xs:element name="Other%d" type="t:Line"/>`, i)
	}
	for i := range 5000 {
		fmt.Fprintf(&wide, `<xs:element name="member%d" type="xs:int" minOccurs="0"/>`, i)
	}
	write := func(old, new string) *typed.Contract { return load(t, changed(t, "orders.wsdl", old, new)) }
	message := []byte(order(when, 1))
	of := func(c *typed.Contract) []byte { return c.Describe(message, true).Own.Octets() }
	own := of(orders(t))
	assert.Equal(t, own, of(write(`<xs:element name="Tree"`, more.String()+`<xs:element name="Tree"`)))
	assert.Less(t, len(own), 2000)
	large := of(write(`<xs:element name="customerNumber" type="xs:int"/>`, wide.String()))
	assert.Less(t, len(large), 32<<10)
	for s := range orders(t).OwnShapes() {
		require.NotNil(t, s)
	}
}

// What is refused of a description is not described, and does no harm.
func TestRefusedMessages(t *testing.T) {
	c := load(t, changed(t, "orders.wsdl", `<xs:element name="customerNumber" type="xs:int"/>`,
		`</xs:sequence></xs:complexType></xs:element><xs:element name="Odd"><xs:complexType><xs:all><xs:any/>`+
			`<xs:element name="a"/></xs:all></xs:complexType></xs:element><xs:element name="More"><xs:complexType>`+
			`<xs:sequence>`))
	for own := range c.OwnShapes() {
		assert.NotNil(t, own)
	}
	assert.NotEmpty(t, c.URI())
}
