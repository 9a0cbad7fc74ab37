// Package workload makes the messages with which hhfr is measured: seeded, so that anyone can
// measure again what the documents claim. The kinds are those of docs/benchmarks.md: W1 strings, W2
// numbers, W3 records, W4 a payload, W5 headers, W6 headers of
// which most do not change.
//
// A sequence yields the same messages every time it is ranged over, and each yielded slice belongs
// to the caller.
package workload

import (
	"encoding/base64"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"strconv"
	"time"
)

const (
	envelopeOpen = `<?xml version="1.0" encoding="UTF-8"?>` + "\n" +
		`<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"` +
		` xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">` +
		`<soapenv:Body>`
	envelopeClose = `</soapenv:Body></soapenv:Envelope>`
)

// Strings yields W1 without end: messages of n strings of 24 characters, invented words out of 2000
// fixed ones.
func Strings(seed uint64, n int) iter.Seq[[]byte] {
	return sequence(seed, "echoStringArray", n, func(r *rand.Rand, b []byte) []byte {
		b = append(b, "<item>"...)
		b = appendSentence(b, r)
		return append(b, "</item>"...)
	})
}

// Floats yields W2 without end: messages of n float32, each normal × 10^k with k uniform in 0..3,
// as its shortest text.
func Floats(seed uint64, n int) iter.Seq[[]byte] {
	return sequence(seed, "echoFloatArray", n, func(r *rand.Rand, b []byte) []byte {
		b = append(b, "<item>"...)
		v := float32(r.NormFloat64() * math.Pow10(r.IntN(4)))
		b = strconv.AppendFloat(b, float64(v), 'g', -1, 32)
		return append(b, "</item>"...)
	})
}

// Records yields W3 without end: messages of n records of a constant string, an int that varies in
// its last five digits, and a random boolean.
func Records(seed uint64, n int) iter.Seq[[]byte] {
	return sequence(seed, "echoStructArray", n, func(r *rand.Rand, b []byte) []byte {
		b = append(b, "<item><s>this is a string</s><i>"...)
		b = strconv.AppendInt(b, 12345678+r.Int64N(100000), 10)
		b = append(b, "</i><b>"...)
		b = strconv.AppendBool(b, r.IntN(2) == 0)
		return append(b, "</b></item>"...)
	})
}

// Blob is W4: one message that carries n random bytes as base64. It takes 4/3 n bytes of memory and
// a little more.
func Blob(seed uint64, n int) []byte {
	raw := make([]byte, n)
	rnd := generator(seed)
	for i := 0; i < n; i += 8 {
		v := rnd.Uint64()
		for k := i; k < min(i+8, n); k++ {
			raw[k] = byte(v)
			v >>= 8
		}
	}
	b := make([]byte, 0, base64.StdEncoding.EncodedLen(n)+1024)
	b = append(b, envelopeOpen+`<ns1:echoBase64 xmlns:ns1="http://hhfr.example.org/bench"><input>`...)
	b = base64.StdEncoding.AppendEncode(b, raw)
	return append(b, `</input></ns1:echoBase64>`+envelopeClose...)
}

// Mixed returns the first messages of each kind except payloads.
func Mixed(each int) (list [][]byte) {
	for _, kind := range []iter.Seq[[]byte]{Floats(1, 100), Records(2, 20), Records(3, 200), Strings(4, 8),
		Headers(5)} {
		n := 0
		for m := range kind {
			list = append(list, m)
			if n++; n == each {
				break
			}
		}
	}
	return list
}

// Headers yields W5 without end: a small trade report under WS-Addressing, WS-RM and WS-Security
// headers, in which identifiers, times, digest and nonce change from message to message and the
// numbers count.
func Headers(seed uint64) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		rnd := generator(seed)
		sequence := uuid(rnd)
		start := time.Date(2006, 6, 11, 4, 26, 40, 0, time.UTC)
		symbols := []string{"IBM", "MSFT", "SUNW", "ORCL", "GOOG"}
		for i := 0; ; i++ {
			at := start.Add(time.Duration(i)*time.Second + time.Duration(rnd.IntN(1000))*time.Millisecond)
			created, expires := stamp(at), stamp(at.Add(5*time.Minute))
			price := strconv.FormatFloat(float64(2000+rnd.IntN(98000))/100, 'f', -1, 64)
			b := fmt.Appendf(nil, headersText, uuid(rnd), uuid(rnd), sequence, i+1, created, expires,
				random64(rnd, 20), random64(rnd, 16), created, symbols[rnd.IntN(len(symbols))], price, rnd.IntN(100000))
			if !yield(b) {
				return
			}
		}
	}
}

const headersText = `<?xml version="1.0" encoding="UTF-8"?>` + "\n" +
	`<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"` +
	` xmlns:wsa="http://schemas.xmlsoap.org/ws/2004/08/addressing" ` +
	`xmlns:wsrm="http://schemas.xmlsoap.org/ws/2005/02/rm"` +
	` xmlns:wsse="http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd"` +
	` xmlns:wsu="http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd"><soapenv:Header>` +
	`<wsa:To soapenv:mustUnderstand="1">http://services.example.org:8080/axis/services/StockQuote</wsa:To>` +
	`<wsa:Action>http://services.example.org/StockQuote/reportTrade</wsa:Action>` +
	`<wsa:ReplyTo><wsa:Address>http://schemas.xmlsoap.org/ws/2004/08/addressing/role/anonymous</wsa:Address>` +
	`</wsa:ReplyTo>` +
	`<wsa:MessageID>urn:uuid:%s</wsa:MessageID><wsa:RelatesTo>urn:uuid:%s</wsa:RelatesTo>` +
	`<wsrm:Sequence soapenv:mustUnderstand="1"><wsrm:Identifier>urn:uuid:%s</wsrm:Identifier>` +
	`<wsrm:MessageNumber>%d</wsrm:MessageNumber></wsrm:Sequence><wsse:Security soapenv:mustUnderstand="1">` +
	`<wsu:Timestamp><wsu:Created>%s</wsu:Created><wsu:Expires>%s</wsu:Expires></wsu:Timestamp><wsse:UsernameToken>` +
	`<wsse:Username>mobile-user-17</wsse:Username><wsse:Password>%s</wsse:Password><wsse:Nonce>%s</wsse:Nonce>` +
	`<wsu:Created>%s</wsu:Created></wsse:UsernameToken></wsse:Security></soapenv:Header><soapenv:Body>` +
	`<q:reportTrade xmlns:q="http://services.example.org/StockQuote"><q:symbol>%s</q:symbol><q:price>%s</q:price>` +
	`<q:volume>%d</q:volume></q:reportTrade></soapenv:Body></soapenv:Envelope>`

func sequence(seed uint64, operation string, n int, item func(*rand.Rand, []byte) []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		rnd := generator(seed)
		size := 0
		for {
			b := append(make([]byte, 0, size+64), envelopeOpen...)
			b = append(b, `<ns1:`+operation+` xmlns:ns1="http://hhfr.example.org/bench"><input>`...)
			for range n {
				b = item(rnd, b)
			}
			b = append(b, `</input></ns1:`+operation+`>`+envelopeClose...)
			size = len(b)
			if !yield(b) {
				return
			}
		}
	}
}

func generator(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x68686672)) }

func stamp(t time.Time) string { return t.Format("2006-01-02T15:04:05.000Z") }

func uuid(r *rand.Rand) string {
	a, b := r.Uint64(), r.Uint64()
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", a>>32, a>>16&0xffff, a&0xffff, b>>48, b&0xffffffffffff)
}

func random64(r *rand.Rand, n int) string {
	raw := make([]byte, n)
	for i := range raw {
		raw[i] = byte(r.Uint32())
	}
	return base64.StdEncoding.EncodeToString(raw)
}
