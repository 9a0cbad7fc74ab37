package bind_test

import (
	"encoding/xml"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/bind"
	"github.com/hhfr/hhfr/internal/xmltext/pull"
)

const benchSpace = "http://hhfr.example.org/bench"

// records is what the messages of workload.Records say.
type records struct {
	XMLName xml.Name `xml:"http://hhfr.example.org/bench echoStructArray"`
	Input   struct {
		Items []item `xml:"http://hhfr.example.org/bench item"`
	} `xml:"http://hhfr.example.org/bench input"`
}

type item struct {
	S string `xml:"http://hhfr.example.org/bench s"`
	I int64  `xml:"http://hhfr.example.org/bench i"`
	B bool   `xml:"http://hhfr.example.org/bench b"`
}

func recordsOf(n int) *records {
	r, v := rand.New(rand.NewPCG(1, 1)), &records{}
	for range n {
		v.Input.Items = append(v.Input.Items, item{"this is a string", 12345678 + r.Int64N(100000), r.IntN(2) == 0})
	}
	return v
}

// appendByHand is what a program of records does, by hand.
func appendByHand(b []byte, v *records) []byte {
	b = append(b, `<echoStructArray xmlns="`+benchSpace+`"><input>`...)
	for i := range v.Input.Items {
		it := &v.Input.Items[i]
		b = append(b, "<item><s>"...)
		for _, c := range []byte(it.S) {
			switch {
			case c == '<':
				b = append(b, "&lt;"...)
			case c == '&':
				b = append(b, "&amp;"...)
			case c < ' ':
				panic("a character that needs more code")
			default:
				b = append(b, c)
			}
		}
		b = append(b, "</s><i>"...)
		b = strconv.AppendInt(b, it.I, 10)
		b = append(b, "</i><b>"...)
		b = strconv.AppendBool(b, it.B)
		b = append(b, "</b></item>"...)
	}
	return append(b, "</input></echoStructArray>"...)
}

// readByHand is a reader of the same elements, by hand, over the same parser.
func readByHand(x *pull.Parser, v *records) error {
	for {
		step, err := x.Next()
		if err != nil || x.Depth() == 0 {
			return err
		}
		if step != pull.StartTag {
			continue
		}
		space, local := x.Name()
		if string(space) != benchSpace {
			return fmt.Errorf("namespace %s", space)
		}
		switch name := string(local); name {
		case "echoStructArray", "input":
		case "item":
			v.Input.Items = append(v.Input.Items, item{})
		default:
			text, err := x.Content()
			if err != nil {
				return err
			}
			it := &v.Input.Items[len(v.Input.Items)-1]
			switch name {
			case "s":
				it.S = string(text)
			case "i":
				it.I, err = strconv.ParseInt(string(text), 10, 64)
			case "b":
				it.B, err = strconv.ParseBool(string(text))
			}
			if err != nil {
				return err
			}
		}
	}
}

// BenchmarkBind is of the content of messages of 20 and 500 records (workload.Records): a program
// beside code that is written by hand, and encoding/xml.
func BenchmarkBind(b *testing.B) {
	p := compiled[records](b)
	for _, n := range []int{20, 500} {
		v := recordsOf(n)
		text := []byte(write(b, p, v))
		require.Equal(b, string(text), string(appendByHand(nil, v)))
		run := func(name string, do func()) {
			b.Run(fmt.Sprintf("%drecords/%s", n, name), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					do()
				}
			})
		}
		buffer := make([]byte, 0, 2*len(text))
		run("write/bind", func() { buffer, _ = bind.Append(p, buffer[:0], v) })
		run("write/hand", func() { buffer = appendByHand(buffer[:0], v) })
		run("write/encoding-xml", func() { _, _ = xml.Marshal(v) })

		var x pull.Parser
		begin := func() *records {
			x.Reset(text)
			_, err := x.Next()
			require.NoError(b, err)
			return &records{}
		}
		run("read/bind", func() { require.NoError(b, bind.Read(p, &x, begin())) })
		run("read/hand", func() { require.NoError(b, readByHand(&x, begin())) })
		run("read/encoding-xml", func() { require.NoError(b, xml.Unmarshal(text, &records{})) })
	}
}
