package bind_test

import (
	"encoding/xml"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/bind"
	"github.com/hhfr/hhfr/internal/xmltext/pull"
)

func compiled[T any](t testing.TB) *bind.Blueprint {
	t.Helper()
	p, err := bind.Compile[T]()
	require.NoError(t, err)
	return p
}

func write[T any](t testing.TB, p *bind.Blueprint, v *T) string {
	t.Helper()
	out, err := bind.Append(p, []byte("<!---->"), v)
	require.NoError(t, err)
	return strings.TrimPrefix(string(out), "<!---->")
}

func read[T any](p *bind.Blueprint, text string) (v T, err error) {
	var x pull.Parser
	x.Reset([]byte(text))
	if _, err = x.Next(); err == nil {
		err = bind.Read(p, &x, &v)
	}
	return v, err
}

type celsius float64

type level int8

// shout is a text of its own.
type shout struct{ Loud string }

func (s shout) MarshalText() ([]byte, error) { return []byte(strings.ToUpper(s.Loud)), nil }

func (s *shout) UnmarshalText(text []byte) error {
	if strings.Contains(string(text), "?") {
		return errors.New("no question")
	}
	s.Loud = strings.ToLower(string(text))
	return nil
}

// one has a value of one type.
type one[T any] struct {
	XMLName xml.Name `xml:"urn:x a"`
	V       T        `xml:"urn:x v"`
}

// wrapped is what stands in one.
func wrapped(inner string) string { return `<a xmlns="urn:x">` + inner + "</a>" }

// both writes a value, and reads it again.
func both[T any](t *testing.T, v T, inner string) {
	t.Helper()
	p := compiled[one[T]](t)
	assert.Equal(t, wrapped(inner), write(t, p, &one[T]{V: v}))
	got, err := read[one[T]](p, wrapped(inner))
	require.NoError(t, err)
	assert.Equal(t, one[T]{XMLName: xml.Name{Space: "urn:x", Local: "a"}, V: v}, got)
}

func to[T any](v T) *T { return &v }

func TestKinds(t *testing.T) {
	both(t, true, "<v>true</v>")
	both(t, false, "<v>false</v>")
	both(t, -5, "<v>-5</v>")
	both(t, int8(math.MinInt8), "<v>-128</v>")
	both(t, int16(math.MaxInt16), "<v>32767</v>")
	both(t, int32(math.MinInt32), "<v>-2147483648</v>")
	both(t, int64(math.MinInt64), "<v>-9223372036854775808</v>")
	both(t, int64(math.MaxInt64), "<v>9223372036854775807</v>")
	both(t, level(7), "<v>7</v>")
	both(t, uint(5), "<v>5</v>")
	both(t, uint8(255), "<v>255</v>")
	both(t, uint16(65535), "<v>65535</v>")
	both(t, uint32(math.MaxUint32), "<v>4294967295</v>")
	both(t, uint64(math.MaxUint64), "<v>18446744073709551615</v>")
	both(t, uintptr(1), "<v>1</v>")
	both(t, float32(0.1), "<v>0.1</v>")
	both(t, float32(1e7), "<v>1.0E7</v>")
	both(t, 0.1, "<v>0.1</v>")
	both(t, 9999999.5, "<v>9999999.5</v>")
	both(t, -1.5e300, "<v>-1.5E300</v>")
	both(t, 5e-324, "<v>5.0E-324</v>")
	both(t, 1e-10, "<v>1.0E-10</v>")
	both(t, math.Inf(1), "<v>INF</v>")
	both(t, math.Inf(-1), "<v>-INF</v>")
	both(t, celsius(-40), "<v>-40</v>")
	both(t, "", "<v></v>")
	both(t, " a<b>&\"'\r\n\té😀 ", "<v> a&lt;b&gt;&amp;&#34;'&#13;&#10;&#9;é😀 </v>")
	both(t, []byte{0xFB, 0xFF, 0}, "<v>+/8A</v>")
	both(t, []byte{}, "<v></v>")
	both(t, time.Date(2026, 1, 2, 3, 4, 5, 600_000_000, time.UTC), "<v>2026-01-02T03:04:05.6Z</v>")
	both(t, shout{"hey"}, "<v>HEY</v>")
	both(t, *big.NewInt(1e18), "<v>1000000000000000000</v>")
	both(t, (*int)(nil), "")
	both(t, to(0), "<v>0</v>")
	both(t, to("x"), "<v>x</v>")
	both(t, to(shout{"x"}), "<v>X</v>")
	both(t, []int(nil), "")
	both(t, []int{1, 2, 3, 4, 5, 6}, "<v>1</v><v>2</v><v>3</v><v>4</v><v>5</v><v>6</v>")
	both(t, []string{"", "a"}, "<v></v><v>a</v>")
	both(t, []*float64{to(1.0), to(2.0)}, "<v>1</v><v>2</v>")
	both(t, [][]byte{{1}, {2, 3}}, "<v>AQ==</v><v>AgM=</v>")
	both(t, []bool{true, false}, "<v>true</v><v>false</v>")

	p := compiled[one[float64]](t)
	got, err := read[one[float64]](p, write(t, p, &one[float64]{V: math.NaN()}))
	require.NoError(t, err)
	assert.True(t, math.IsNaN(got.V))
	minus, err := read[one[float64]](p, write(t, p, &one[float64]{V: math.Copysign(0, -1)}))
	require.NoError(t, err)
	assert.True(t, math.Signbit(minus.V), "zero has a sign")
}

// reads reads a value that would not be written like this.
func reads[T any](t *testing.T, inner string, want T) {
	t.Helper()
	got, err := read[one[T]](compiled[one[T]](t), wrapped(inner))
	require.NoError(t, err)
	assert.Equal(t, want, got.V)
}

func TestReads(t *testing.T) {
	reads(t, "<v> 1 </v>", true)
	reads(t, "<v>\n0</v>", false)
	reads(t, "<v/>", 0)
	reads(t, "<v> +5\n</v>", 5)
	reads(t, "<v>-0</v>", 0)
	reads(t, "<v>+5</v>", uint8(5))
	reads(t, "<v>0000000000000000000000000000007</v>", 7)
	reads(t, "<v> +INF </v>", float32(math.Inf(1)))
	reads(t, "<v>1.e5</v>", 1e5)
	reads(t, "<v>A Q=\n=</v>", []byte{1})
	reads(t, "<v>2026-01-02T03:04:05</v>", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	reads(t, "<v>a<!-- c --><![CDATA[&amp;]]>&amp;</v>", "a&amp;&")
	reads(t, "<w>1</w><v>2</v><w><v>3</v></w>", 2)
	reads(t, `<v xmlns="urn:y">1</v><v>2</v>`, 2)
	reads(t, "<v>1</v><v>2</v>", 2)
	reads(t, "text <v>1</v> text", 1)
	reads(t, `<v xsi:nil="true" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"/>`, 0)
	reads(t, `<v xsi:nil="1" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"/>`, (*int)(nil))
	reads(t, `<v xsi:nil="false" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">1</v>`, to(1))
	reads(t, `<p:v xmlns:p="urn:x">1</p:v>`, 1)
}

// fails reads what cannot be read.
func fails[T any](t *testing.T, inner, want string) {
	t.Helper()
	_, err := read[one[T]](compiled[one[T]](t), wrapped(inner))
	require.Error(t, err)
	assert.Equal(t, want, err.Error())
}

func TestFails(t *testing.T) {
	fails[bool](t, "<v>TRUE</v>", `a/v: "TRUE" is no boolean`)
	fails[int64](t, "<v>1.0</v>", `a/v: "1.0" is no integer of 64 bits`)
	fails[int8](t, "<v>128</v>", `a/v: "128" is no integer of 8 bits`)
	fails[int64](t, "<v>9223372036854775808</v>", `a/v: "9223372036854775808" is no integer of 64 bits`)
	fails[int64](t, "<v>1_000</v>", `a/v: "1_000" is no integer of 64 bits`)
	fails[int64](t, "<v>-</v>", `a/v: "-" is no integer of 64 bits`)
	fails[uint8](t, "<v>256</v>", `a/v: "256" is no number of 8 bits without sign`)
	fails[uint64](t, "<v>-1</v>", `a/v: "-1" is no number of 64 bits without sign`)
	fails[uint64](t, "<v>++1</v>", `a/v: "++1" is no number of 64 bits without sign`)
	fails[float64](t, "<v>x</v>", `a/v: "x" is no float`)
	fails[float64](t, "<v>0x1p-2</v>", `a/v: "0x1p-2" is no float`)
	fails[float64](t, "<v>Infinity</v>", `a/v: "Infinity" is no float`)
	fails[float64](t, "<v>nan</v>", `a/v: "nan" is no float`)
	fails[float64](t, "<v>1_0</v>", `a/v: "1_0" is no float`)
	fails[float64](t, "<v>1e400</v>", `a/v: "1e400" is beyond a float of 64 bits`)
	fails[float32](t, "<v>1e39</v>", `a/v: "1e39" is beyond a float of 32 bits`)
	fails[[]byte](t, "<v>AQ=</v>", `a/v: "AQ=" is no base64`)
	fails[time.Time](t, "<v>2026-13-01T00:00:00Z</v>", `a/v: "2026-13-01T00:00:00Z" is no dateTime`)
	fails[shout](t, "<v>?</v>", `a/v: "?": no question`)
	fails[[]float64](t, "<v>1</v><v/><v>x</v>", `a/v[3]: "x" is no float`)
	fails[*int64](t, "<v>x</v>", `a/v: "x" is no integer of 64 bits`)
	fails[int64](t, "<v>1<w/></v>", `line 1, column 22 (offset 21): element "w" where text is expected`)
	fails[int64](t, "<v>1</w>", `line 1, column 22 (offset 21): the end tag of "w" in "v"`)
	fails[[]struct {
		V int64 `xml:"v"`
	}](t, "<v><v>1</v></v><v><v>x</v></v>", `a/v[2]/v: "x" is no integer of 64 bits`)
	_, err := read[one[int]](compiled[one[int]](t), "<a/>")
	assert.EqualError(t, err, "a: found a, expected {urn:x}a")
}

type common struct {
	Author string `xml:"urn:x author"`
	Rev    int    `xml:"rev,attr,omitempty"`
}

type price struct {
	Currency string  `xml:"currency,attr"`
	Amount   float64 `xml:",chardata"`
}

type line struct {
	ID       string   `xml:"id,attr"`
	Lang     *string  `xml:"http://www.w3.org/XML/1998/namespace lang,attr"`
	Price    *price   `xml:"urn:x Price" soap:"nil"`
	Parts    []*line  `xml:"urn:x Part"`
	Note     *string  `xml:"urn:other Note"`
	Readings []*int32 `xml:"urn:x Reading" soap:"nil"`
	Blank    string   `xml:"urn:x Blank,omitempty"`
}

type order struct {
	XMLName xml.Name `xml:"urn:x Order"`
	common
	Placed  time.Time      `xml:"urn:x Placed"`
	Lines   []line         `xml:"urn:x Line"`
	Type    string         `xml:"http://www.w3.org/2001/XMLSchema-instance type,attr,omitempty"`
	State   string         `xml:"urn:x state,attr,omitempty"`
	Ignored map[string]int `xml:"-"`
}

func TestOrder(t *testing.T) {
	v := order{
		common: common{"me & you", 3}, Placed: time.Date(2026, 5, 6, 7, 8, 9, 0, time.FixedZone("", 3600)),
		Lines: []line{
			{ID: "1", Price: &price{"EUR", 9.5}, Note: to("n"), Readings: []*int32{to(int32(1)), nil}},
			{ID: `"2"`, Lang: to("de"), Parts: []*line{{ID: "3"}}},
		},
		State: "open",
	}
	p := compiled[order](t)
	const want = `<Order xmlns="urn:x" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:n1="urn:other" ` +
		`xmlns:n2="urn:x" rev="3" n2:state="open"><author>me &amp; you</author>` +
		`<Placed>2026-05-06T07:08:09+01:00</Placed>` +
		`<Line id="1"><Price currency="EUR">9.5</Price><n1:Note>n</n1:Note><Reading>1</Reading>` +
		`<Reading xsi:nil="true"></Reading></Line><Line id="&#34;2&#34;" xml:lang="de"><Price xsi:nil="true"></Price>` +
		`<Part id="3"><Price xsi:nil="true"></Price></Part></Line></Order>`
	text := write(t, p, &v)
	assert.Equal(t, want, text)
	got, err := read[order](p, text)
	require.NoError(t, err)
	v.XMLName = xml.Name{Space: "urn:x", Local: "Order"}
	assert.True(t, v.Placed.Equal(got.Placed))
	got.Placed = v.Placed
	assert.Equal(t, v, got)

	var other order
	require.NoError(t, xml.Unmarshal([]byte(text), &other))
	assert.Equal(t, v.Lines[0].Price, other.Lines[0].Price)
	assert.Equal(t, v.common, other.common)
	assert.Equal(t, v.Lines[1].Parts[0].ID, other.Lines[1].Parts[0].ID)
	assert.Equal(t, v.State, other.State)
}

// bare are elements of which the tags say no namespace.
type bare struct {
	XMLName xml.Name `xml:"urn:x op" soap:"unqualified"`
	A       int      `xml:"a"`
	In      struct {
		B string `xml:"b"`
		C string `xml:"urn:y c"`
		D struct {
			E int `xml:"e"`
		} `xml:"urn:x d"`
	} `xml:"in"`
}

type inherited struct {
	XMLName xml.Name `xml:"urn:x op"`
	A       int      `xml:"a"`
	In      struct {
		B int
	} `xml:"urn:y in"`
}

type plainly struct {
	A int `xml:"a"`
	B int `xml:"urn:x b"`
}

func TestNamespaces(t *testing.T) {
	p := compiled[bare](t)
	const unqualified = `<n1:op xmlns:n1="urn:x" xmlns:n2="urn:y"><a>0</a><in><b></b><n2:c></n2:c>` +
		`<n1:d><e>0</e></n1:d></in></n1:op>`
	assert.Equal(t, unqualified, write(t, p, &bare{}))
	got, err := read[bare](p, strings.Replace(unqualified, "<e>0</e>", `<e xmlns="urn:any">5</e>`, 1))
	require.NoError(t, err)
	assert.Equal(t, 5, got.In.D.E)
	_, err = read[bare](p, `<op xmlns="urn:y"/>`)
	require.Error(t, err)

	q := compiled[inherited](t)
	assert.Equal(t, `<op xmlns="urn:x" xmlns:n1="urn:y"><a>0</a><n1:in><n1:B>0</n1:B></n1:in></op>`,
		write(t, q, &inherited{}))
	assert.Equal(t, `<plainly xmlns:n1="urn:x"><a>0</a><n1:b>0</n1:b></plainly>`,
		write(t, compiled[plainly](t), &plainly{}))
}

type knot struct {
	Next *knot
	List []knot
}

type loud struct{ N int }

func (loud) MarshalXML(*xml.Encoder, xml.StartElement) error { return nil }

type halfText struct{ N int }

func (halfText) MarshalText() ([]byte, error) { return nil, nil }

type named struct {
	XMLName xml.Name `xml:"urn:n name"`
}

type brokenName struct {
	XMLName xml.Name `xml:"a b/c"`
}

// refused compiles a struct with one field that cannot be.
func refused[T any](t *testing.T, want string) {
	t.Helper()
	_, err := bind.Compile[one[T]]()
	require.Error(t, err)
	assert.Equal(t, want, err.Error())
}

func TestCompileRefuses(t *testing.T) {
	type has[T any] = struct{ A, B T }
	for _, tc := range []struct {
		compile func() (*bind.Blueprint, error)
		want    string
	}{
		{bind.Compile[int], "int: is no struct, which the content of a message is"},
		{bind.Compile[time.Time], "time.Time: is no struct, which the content of a message is"},
		{bind.Compile[*order], "*bind_test.order: is no struct, which the content of a message is"},
		{bind.Compile[has[int]], "no name of an element: give it a field XMLName of type xml.Name"},
		{bind.Compile[brokenName], `brokenName.XMLName: "b/c" is no name of an element or attribute`},
	} {
		_, err := tc.compile()
		require.Error(t, err)
		assert.Contains(t, err.Error(), tc.want)
	}
	refused[map[string]int](t, "one.V: map[string]int has no form in XML")
	refused[chan int](t, "one.V: chan int has no form in XML")
	refused[func()](t, "one.V: func() has no form in XML")
	refused[any](t, "one.V: interface {} has no form in XML")
	refused[error](t, "one.V: error has no form in XML")
	refused[complex128](t, "one.V: complex128 has no form in XML")
	refused[[3]int](t, "one.V: [3]int has no form in XML")
	refused[[][]int](t, "one.V[]: []int has no form in XML")
	refused[**int](t, "one.V: *int has no form in XML")
	refused[*[]int](t, "one.V: []int has no form in XML")
	refused[xml.Name](t, "one.V: an xml.Name is for XMLName alone")
	refused[loud](t, "one.V: bind_test.loud has MarshalXML or UnmarshalXML, which are not called")
	refused[halfText](t, "one.V: bind_test.halfText has MarshalText and no UnmarshalText")
	refused[[]struct{ Lines []struct{ Price chan int } }](t, "one.V[].Lines[].Price: chan int has no form in XML")
	refused[struct{ a int }](t, `one.V.a: is not exported: leave it out by xml:"-"`)
	refused[struct {
		A int `xml:"a,any"` //nolint:staticcheck // it is refused
	}](t, `one.V.A: the option "any" of its tag is not known`)
	refused[struct {
		A int `xml:"a>b"`
	}](t, `one.V.A: "a>b" is no name of an element or attribute`)
	refused[struct {
		A int
		B int `xml:"A"`
	}](t, "one.V.B: another field has the element {urn:x}A")
	refused[struct {
		A int `xml:",attr"`
		B int `xml:"A,attr"`
	}](t, "one.V.B: another field has the attribute A")
	refused[struct {
		common
		Author string `xml:"author"`
	}](t, "one.V.Author: another field has the element {urn:x}author")
	refused[struct {
		A string `xml:",chardata"`
		B string `xml:",chardata"`
	}](t, "one.V.B: the text has a field already")
	refused[struct {
		A string `xml:",chardata"`
		B string
	}](t, "one.V: has text and elements")
	refused[struct {
		A struct{} `xml:",chardata"`
	}](t, "one.V.A: text is a single value, not struct {}")
	refused[struct {
		A []int `xml:",chardata"`
	}](t, "one.V.A: text is a single value, not []int")
	refused[struct {
		A []int `xml:"a,attr"`
	}](t, "one.V.A: an attribute is a single value, not []int")
	refused[struct {
		A common `xml:"a,attr"`
	}](t, "one.V.A: an attribute is a single value, not bind_test.common")
	refused[struct {
		A int `soap:"nil"`
	}](t, `one.V.A: soap:"nil" is for pointers`)
	refused[struct {
		A *int `xml:"a,omitempty" soap:"nil"`
	}](t, "one.V.A: the options of its tags exclude each other")
	refused[struct {
		A int `soap:"null"`
	}](t, `one.V.A: the tag soap:"null" is not known`)
	refused[struct {
		A int `soap:"unqualified"`
	}](t, `one.V.A: soap:"unqualified" is for XMLName alone`)
	refused[struct{ *common }](t, `one.V.common: is not exported: leave it out by xml:"-"`)
	refused[struct {
		A named `xml:"other"` //nolint:staticcheck // it is refused
	}](t, "one.V.A: its tag says other, and that of bind_test.named.XMLName {urn:n}name")
	refused[struct {
		A int "xml:\"a\x01b c\""
	}](t, "one.V.A: the namespace \"a\\x01b\" cannot stand in XML")
	refused[struct {
		A int `xml:"http://www.w3.org/2000/xmlns/ a"`
	}](t, "one.V.A: nothing can be in the namespace http://www.w3.org/2000/xmlns/")
}

func TestWriteFails(t *testing.T) {
	k := &knot{}
	k.Next = k
	_, err := bind.Append(compiled[knot](t), nil, k)
	require.ErrorContains(t, err, "Next: the value nests too deep, or contains itself")
	p := compiled[one[[]string]](t)
	for _, bad := range []string{"\x00", "a\x1F", "\xFF", "\uFFFE", "\xED\xA0\x80"} {
		out, err := bind.Append(p, []byte("x"), &one[[]string]{V: []string{"", bad}})
		require.ErrorContains(t, err, "a/v[2]: ")
		require.ErrorContains(t, err, "cannot stand in XML")
		assert.Equal(t, "x", string(out))
	}
	_, err = bind.Append(compiled[one[time.Time]](t), nil, &one[time.Time]{V: time.Unix(1<<40, 0)})
	require.ErrorContains(t, err, "a/v: the time cannot be written: ")
}

// What nests as deep as may be written can be read.
func TestDeepest(t *testing.T) {
	p := compiled[knot](t)
	var k *knot
	for range 899 {
		k = &knot{Next: k}
	}
	text := write(t, p, &knot{Next: k})
	_, err := read[knot](p, text)
	require.NoError(t, err)
	_, err = read[knot](p, strings.Repeat("<Next>", 5000))
	require.Error(t, err)
}

// random is an order of anything.
func random(r *rand.Rand) *order {
	words := []string{"", "a", " <&>\"' ", "é😀", "\r\n\t", "]]>", strings.Repeat("x", 300)}
	word := func() string { return words[r.IntN(len(words))] }
	var lines func(depth int) []*line
	lines = func(depth int) (list []*line) {
		for range r.IntN(4 - depth) {
			l := &line{ID: word(), Blank: word(), Parts: lines(depth + 1)}
			if r.IntN(2) == 0 {
				l.Price = &price{word(), math.Float64frombits(r.Uint64())}
				if math.IsNaN(l.Price.Amount) {
					l.Price.Amount = math.Inf(1)
				}
				l.Lang, l.Note = to(word()), to(word())
			}
			for range r.IntN(3) {
				l.Readings = append(l.Readings, to(int32(r.Uint32())), nil)
			}
			list = append(list, l)
		}
		return list
	}
	o := &order{common: common{word(), int(r.Int64())}, State: word(), Type: word()}
	o.Placed = time.Unix(r.Int64N(1e10), r.Int64N(1e9)).UTC()
	for _, l := range lines(0) {
		o.Lines = append(o.Lines, *l)
	}
	return o
}

// Values that are written are read back the same, by encoding/xml, too, but for what xsi:nil says.
func TestAnyValue(t *testing.T) {
	p := compiled[order](t)
	for seed := range uint64(500) {
		v := random(rand.New(rand.NewPCG(seed, 1)))
		text := write(t, p, v)
		assert.Equal(t, text, write(t, p, v))
		got, err := read[order](p, text)
		require.NoError(t, err)
		v.XMLName = got.XMLName
		require.Equal(t, *v, got)

		var other order
		require.NoError(t, xml.Unmarshal([]byte(text), &other))
		require.Equal(t, *v, *withNulls(v, &other))
	}
}

// withNulls takes out of an order of encoding/xml, which reads zero values where xsi:nil stands,
// what has none.
func withNulls(of, o *order) *order {
	var lines func(of, l *line)
	lines = func(of, l *line) {
		if of.Price == nil {
			l.Price = nil
		}
		for i := range min(len(of.Readings), len(l.Readings)) {
			if of.Readings[i] == nil {
				l.Readings[i] = nil
			}
		}
		for i := range min(len(of.Parts), len(l.Parts)) {
			lines(of.Parts[i], l.Parts[i])
		}
	}
	for i := range min(len(of.Lines), len(o.Lines)) {
		lines(&of.Lines[i], &o.Lines[i])
	}
	return o
}

func TestConcurrently(t *testing.T) {
	p := compiled[order](t)
	var all sync.WaitGroup
	for seed := range uint64(8) {
		all.Go(func() {
			v := random(rand.New(rand.NewPCG(seed, 2)))
			for range 50 {
				got, err := read[order](p, write(t, p, v))
				if assert.NoError(t, err) {
					v.XMLName = got.XMLName
					assert.Equal(t, *v, got)
				}
			}
		})
	}
	all.Wait()
}

// FuzzRead: what is read, written and read again is the same.
func FuzzRead(f *testing.F) {
	p := compiled[order](f)
	for seed := range uint64(4) {
		f.Add([]byte(write(f, p, random(rand.New(rand.NewPCG(seed, 3))))))
	}
	f.Add([]byte(`<Order xmlns="urn:x"><Line><Price currency="&#x41;">INF</Price></Line><Line/></Order>`))
	f.Add([]byte(`<o:Order xmlns:o="urn:x" rev=" +7 "><o:Placed>2026-01-02T03:04:05</o:Placed><o:Part/></o:Order>`))
	f.Fuzz(func(t *testing.T, text []byte) {
		first, err := read[order](p, string(text))
		if err != nil {
			return
		}
		written, err := bind.Append(p, nil, &first)
		require.NoError(t, err)
		second, err := read[order](p, string(written))
		require.NoError(t, err, "%s", written)
		again := write(t, p, &second)
		require.Equal(t, string(written), again)
	})
}
