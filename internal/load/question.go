package load

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"html"
	"math"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"strings"

	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/pkg/soap"
)

// question is a request, and what answers it.
type question struct {
	body []byte
	// right reports whether an answer that is no fault is the right one; nil: a fault is.
	right func(answer []byte) bool
}

// pool is how many different requests there are; they are sent in turn. A service that remembers
// what it was asked has an easier life with fewer.
const pool = 1000

// Services are the services whose answers are known.
func Services() []string { return []string{"geoip", "echo", "sum"} }

// questions makes the requests of a run, the same for the same seed.
func (c *Config) questions() (list []question, err error) {
	random := rand.New(rand.NewPCG(c.Seed, 0))
	ask := map[string]func(kind RequestKind, random *rand.Rand) question{
		"geoip": (&geoipQuestions{peer.DutchRanges()}).geoip, "echo": echo, "sum": sum,
	}[c.Service]
	switch {
	case c.Message != nil && c.Mix != nil:
		return nil, errors.New("a mix is of requests that are made here, not of a message that is given")
	case c.Message != nil:
		expect := []byte(c.Expect)
		return []question{{c.Message, func(b []byte) bool { return bytes.Contains(b, expect) }}}, nil
	case ask == nil:
		return nil, fmt.Errorf("no service %q is known, only %s: give the message and what its answer contains",
			c.Service, strings.Join(Services(), ", "))
	}
	for _, kind := range c.Mix.kinds() {
		list = append(list, ask(kind, random))
	}
	random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list, nil
}

// envelope is a request of an operation of package peer, in SOAP 1.1.
func envelope(operation, content string) []byte {
	return []byte(`<soap:Envelope xmlns:soap="` + soap.V11.Namespace() + `"><soap:Body><` + operation + ` xmlns="` +
		peer.Namespace + `">` + content + `</` + operation + `></soap:Body></soap:Envelope>`)
}

// result is what stands in the element of that name, whatever its prefix.
func result(answer []byte) string {
	_, behind, _ := bytes.Cut(answer, []byte("result>"))
	text, _, _ := bytes.Cut(behind, []byte("<"))
	return strings.TrimSpace(html.UnescapeString(string(text)))
}

// geoipQuestions makes requests of the phones study, whose answers follow from the ranges.
type geoipQuestions struct{ ranges *peer.Ranges }

func (a *geoipQuestions) geoip(kind RequestKind, random *rand.Rand) question {
	if kind == Invalid {
		return question{body: invalid("geoip", random,
			"<address>256.1.1.1</address>", "<address>129.125.102</address>", "<address/>", "<address>::1</address>")}
	}
	address := random.Uint32()
	first, last := a.ranges.At(random.IntN(a.ranges.Len()))
	if random.IntN(2) == 0 {
		address = first + uint32(random.Uint64N(uint64(last-first)+1))
	}
	around := ""
	if kind == Odd { // the edges of ranges and of all addresses, and white space
		address = few(random, first, last, first-1, last+1, 0, math.MaxUint32)
		around = few(random, "", " ", "\n\t\t")
	}
	has := a.ranges.Contains(address)
	body := envelope("geoip", "<address>"+around+dotted(address)+around+"</address>")
	return question{body, func(answer []byte) bool { return result(answer) == strconv.FormatBool(has) }}
}

// few is one of a few values.
func few[T any](random *rand.Rand, values ...T) T { return values[random.IntN(len(values))] }

func dotted(address uint32) string {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, address))).String()
}

// invalid is a request that must be answered by a fault: with wrong content, for another
// operation, or no XML to its end.
func invalid(operation string, random *rand.Rand, contents ...string) []byte {
	switch i := random.IntN(len(contents) + 2); {
	case i < len(contents):
		return envelope(operation, contents[i])
	case i == len(contents):
		return envelope("no"+operation, "")
	}
	whole := envelope(operation, contents[0])
	return whole[:len(whole)-len("</soap:Envelope>")]
}

// items is how many numbers a request of sum and echo has.
const items = 10

func echo(kind RequestKind, random *rand.Rand) question {
	q := sum(kind, random)
	q.right = func(answer []byte) bool { return bytes.Equal(answer, q.body) } // also what sum would not take
	return q
}

// sum has numbers whose sum is exact in any order.
func sum(kind RequestKind, random *rand.Rand) question {
	if kind == Invalid {
		return question{body: invalid("sum", random, "<item>one</item>", "<item/>", "<items>1</items>")}
	}
	var b strings.Builder
	total := 0.0
	for range items {
		v := float64(random.IntN(1<<12)-1<<11) / 8
		total += v
		text := strconv.FormatFloat(v, 'f', -1, 64)
		if kind == Odd { // other forms of a number
			text = few(random, strconv.FormatFloat(v, 'E', -1, 64), " "+text+"\n", strings.Replace(text, "-", "-0", 1))
		}
		b.WriteString("<item>" + text + "</item>")
	}
	return question{envelope("sum", b.String()), func(answer []byte) bool {
		v, err := strconv.ParseFloat(result(answer), 64)
		return err == nil && v == total
	}}
}
