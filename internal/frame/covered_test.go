package frame_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
)

// free are the fields that no check of a message covers, each with the reason why none needs to.
var free = map[string]string{
	"Hello.Token":         "admits to the session, and says nothing of messages; hello has a check of its own",
	"Hello.Brief":         "says how a hello is written; what follows from that is covered",
	"Hello.Proxy":         "says who speaks, and nothing of messages",
	"Hello.Lifetime":      "tells how long a token is good, and says nothing of messages",
	"Hello.Target":        "names the service, and says nothing of messages; hello has a check of its own",
	"Hello.Word":          "identifies syncs, which have it, too, and are compared",
	"Hello.Description":   "says what shapes may stand on; what is made of that has a check",
	"Hello.Abilities":     "says what may be sent to its sender, and nothing of messages",
	"Hello.Limits":        "binds the peer, and says nothing of messages",
	"Data.NamesLane":      "how the lane is told; the lane is covered",
	"Data.NamesExchange":  "how the exchange is told; the exchange is covered",
	"Shape.Number":        "the name of its shape is covered, by each message that begins a part under it",
	"Shape.Form":          "how the shape is told; its name is covered",
	"Shape.Fingerprint":   "its first octets are covered as the name",
	"Shape.Total":         "how the shape is told; its name is covered",
	"Shape.Offset":        "how the shape is told; its name is covered",
	"Shape.Piece":         "the name of the shape is the beginning of a hash over it",
	"Sync.Word":           "a sync has a check of its own",
	"Sync.Offset":         "a sync has a check of its own",
	"Sync.Messages":       "a sync has a check of its own",
	"Sync.Check":          "a sync has a check of its own",
	"Sync.Shapes":         "a sync has a check of its own",
	"Sync.Lanes":          "a sync has a check of its own",
	"Sync.Open":           "a sync has a check of its own",
	"Sync.Responder":      "a sync has a check of its own",
	"Sync.Session":        "a sync has a check of its own",
	"Sync.Representation": "a sync has a check of its own",
	"Sync.Stages":         "a sync has a check of its own",
	"Ack.Octets":          "is about the sequence of the other direction, and no decoder gives it as a message",
	"Kept.Messages":       "is about messages of the other direction, and no decoder gives it as one",
	"Close.Code":          "says why a direction ends, not what was in it",
	"Close.Text":          "for people",
	"Close.Messages":      "is the check",
	"Close.Check":         "is the check",
	"Window.Message":      "says what an end will take, not what there is",
	"Window.Octets":       "says what an end will take, not what there is",
	"Flush.Message":       "says when content is given out, not what it is",
	"Flush.Settled":       "says when content is given out, not what it is",
	"Idle.Lanes":          "what memory holds is said by the reset flag in payloads, which are covered",
	"Skipped.Octet":       "means nothing in this version",
	"Skipped.Body":        "means nothing in this version",
}

// change gives v another value of its type, which a frame may have.
func change(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(v.Uint() ^ 1)
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Array:
		v.Index(v.Len() - 1).SetUint(v.Index(v.Len()-1).Uint() ^ 1)
	case reflect.Slice:
		b := append([]byte(nil), v.Bytes()...)
		b[len(b)-1] ^= 1
		v.SetBytes(b)
	default:
		panic(v.Kind())
	}
}

// checkOf is what the check of a sync behind some frames is.
func checkOf(t *testing.T, h frame.Hello, name [8]byte, frames ...frame.Frame) uint32 {
	t.Helper()
	c := frame.NewChecks(frame.OriginOf(h))
	for _, f := range frames {
		switch f := f.(type) {
		case frame.Cancel:
			c.Cancel(f)
		case frame.Data:
			p, err := c.Cut(&f, 0, 0)
			require.NoError(t, err)
			c.Add(&f, &p, func(uint64) ([8]byte, bool) { return name, true })
		}
	}
	return c.Check()
}

// Every field of every frame is in the check of messages, or there is a reason why it need not be.
func TestEveryFieldIsCovered(t *testing.T) {
	hello := frames["hello-initiator"].(frame.Hello)
	whole := frame.Data{First: true, Last: true, OneWay: true, Lane: 4, Exchange: 8, Place: frame.Place{Number: 2,
		Answers: 4}, Payload: []byte("\x01\x02\x02\x04")}
	cancel := frame.Cancel{Message: frame.Key{Lane: 4, Exchange: 8}, Refused: true, Code: frame.Failed, Text: "text"}
	before := checkOf(t, hello, [8]byte{1}, whole, cancel)
	differs := func(what string, after uint32) bool { return assert.NotEqual(t, before, after, what) }

	assert.NotEqual(t, before, checkOf(t, hello, [8]byte{2}, whole, cancel), "the name of a shape")
	seen := map[string]bool{}
	var walk func(name string, v reflect.Value, changed func() bool)
	walk = func(name string, v reflect.Value, changed func() bool) {
		for i := range v.NumField() {
			field := name + "." + v.Type().Field(i).Name
			switch {
			case free[field] != "":
				seen[field] = true
			case v.Field(i).Kind() == reflect.Struct:
				walk(field, v.Field(i), changed)
			case changed == nil:
				assert.Fail(t, "neither covered nor free", field)
			default:
				old := reflect.New(v.Field(i).Type()).Elem()
				old.Set(v.Field(i))
				change(v.Field(i))
				seen[field] = changed() || seen[field]
				v.Field(i).Set(old)
			}
		}
	}
	walk("Hello", reflect.ValueOf(&hello).Elem(), func() bool {
		return differs("hello", checkOf(t, hello, [8]byte{1},
			whole, cancel))
	})
	walk("Cancel", reflect.ValueOf(&cancel).Elem(), func() bool {
		return differs("cancel", checkOf(t, hello, [8]byte{1},
			whole, cancel))
	})
	for name, d := range map[string]frame.Data{
		"answer": whole,
		"wants": {First: true, Last: true, OneWay: true, Exchange: 8, Place: frame.Place{Number: 2, Wanted: true},
			Payload: []byte("\x01\x02\x03")},
		"long": {First: true, Last: true, OneWay: true, Exchange: 8, Payload: []byte("\x01\x02\x03"),
			Place: frame.Place{Number: 2, Length: 9, From: 5, Wanted: true}},
		"one-way": {First: true, Last: true, OneWay: true, Exchange: 8, Payload: []byte("\x01\x02\x03")},
		"interim": {First: true, Last: true, Reply: true, Interim: true, Head: true, Exchange: 8,
			Payload: []byte("\x01\x02\x03\x01\x01\x01\x01\x01\x01\x01\x01")},
		"reply": {First: true, Last: true, Reply: true, Head: true, Exchange: 8,
			Payload: []byte("\x01\x02\x03\x01\x01\x01\x01\x01\x01\x01\x01")},
	} {
		before = checkOf(t, hello, [8]byte{1}, d)
		walk("Data", reflect.ValueOf(&d).Elem(), func() bool {
			named := d
			named.NamesLane, named.NamesExchange = true, true
			if got, _, err := frame.ParseData(named.AppendTo(nil), 0, 0); err != nil || !reflect.DeepEqual(got, named) {
				return false // no frame says that
			}
			c := frame.NewChecks(frame.OriginOf(hello))
			p, err := c.Cut(&d, 0, 0)
			if err != nil {
				return false
			}
			c.Add(&d, &p, func(uint64) ([8]byte, bool) { return [8]byte{1}, true })
			return differs(name, c.Check())
		})
	}
	seen["Data.Text"] = true  // TestEveryFragmentIsCovered
	seen["Data.First"] = true // it says nothing but whether the message was open, and is refused otherwise
	for field, covered := range seen {
		assert.True(t, covered, "no frame was found that shows %s to be covered", field)
	}
	for _, f := range []frame.Frame{frame.Shape{}, frame.Sync{}, frame.Ack{}, frame.Kept{}, frame.Resync{},
		frame.Close{}, frame.Idle{}, frame.Window{}, frame.Flush{}, frame.Skipped{}} {
		v := reflect.ValueOf(f)
		walk(v.Type().Name(), v, nil)
	}
	for field := range free {
		assert.True(t, seen[field], "%s is no field of a frame", field)
	}
}

// What tells the fragments of a message apart is covered where the message has several.
func TestEveryFragmentIsCovered(t *testing.T) {
	hello := frames["hello-initiator"].(frame.Hello)
	message := func() []frame.Frame {
		return []frame.Frame{
			frame.Data{First: true, Head: true, Exchange: 1, Payload: []byte("\x01\x05he")},
			frame.Data{Head: true, Exchange: 1, Payload: []byte("\x04ad\x02b")},
			frame.Data{Exchange: 1, Payload: []byte("c")},
			frame.Data{Last: true, Exchange: 1, Payload: []byte("d")},
		}
	}
	before := checkOf(t, hello, [8]byte{1}, message()...)
	for what, alter := range map[string]func(m []frame.Frame) []frame.Frame{
		"text": func(m []frame.Frame) []frame.Frame {
			d := m[3].(frame.Data)
			d.Text = true
			return append(m[:3], d)
		},
		"where a fragment ends": func(m []frame.Frame) []frame.Frame {
			return append(m[:2], frame.Data{Exchange: 1, Payload: []byte("cd")}, frame.Data{Last: true, Exchange: 1})
		},
		"how many there are": func(m []frame.Frame) []frame.Frame {
			return append(m[:2], frame.Data{Last: true, Exchange: 1, Payload: []byte("cd")})
		},
		"where the head ends": func(m []frame.Frame) []frame.Frame {
			m[1] = frame.Data{Head: true, Exchange: 1, Payload: []byte("\x02a\x02db")}
			return m
		},
	} {
		assert.NotEqual(t, before, checkOf(t, hello, [8]byte{1}, alter(message())...), what)
	}
}
