package frame_test

import (
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
)

var update = flag.Bool("update", false, "write the vectors anew")

var vectorDir = filepath.Join("..", "..", "testdata", "vectors", "frame")

func seq[T [8]byte | [16]byte | [32]byte](first byte) (b T) {
	switch p := any(&b).(type) {
	case *[8]byte:
		fill(p[:], first)
	case *[16]byte:
		fill(p[:], first)
	case *[32]byte:
		fill(p[:], first)
	}
	return b
}

func fill(b []byte, first byte) {
	for i := range b {
		b[i] = first + byte(i)
	}
}

var limits = frame.Limits{MaxFragment: 16384, MaxMessage: 1 << 30, MaxShapes: 1024, MaxShapeBytes: 4 << 20,
	MaxExchanges: 256, Window: 64 << 20, MaxHeld: 1 << 20}

// far are limits of who reads far windows.
var far = func() frame.Limits {
	l := limits
	l.Far = true
	return l
}()

// usual are the limits that the short form of hello leaves out.
var usual = frame.Limits{MaxFragment: 16384, MaxMessage: 1 << 62, MaxShapes: 1024, MaxShapeBytes: 4 << 20,
	MaxExchanges: 4096, Window: 256 << 10, MaxHeld: 1 << 20}

// brief is a hello in its short form.
func brief(h frame.Hello) frame.Hello {
	h.Session = frame.SeedSession(seq[[8]byte](1))
	h.Shorten()
	return h
}

// frames has all kinds, and the variants of their fields; by the name of the vector.
var frames = map[string]frame.Frame{
	"hello-initiator": frame.Hello{Session: seq[[16]byte](1), Token: fromHex("a0a1a2a3a4a5a6a7a8a9aaabacadaeaf"),
		Word: seq[[8]byte](0x30), Representation: frame.Binary, Limits: limits},
	"hello-responder": frame.Hello{Responder: true, Session: seq[[16]byte](1),
		Token: fromHex("b0b1b2b3b4b5b6b7b8b9babbbcbdbebf"), Word: seq[[8]byte](0x40), Representation: frame.XML,
		Limits: frame.Limits{MaxFragment: 512, MaxExchanges: 1}, Lifetime: 3600},
	"hello-refusal": frame.Hello{Responder: true, Proxy: true, Session: seq[[16]byte](1), Token: []byte{},
		Word: seq[[8]byte](0x48), Limits: limits},
	"hello-first-contact": frame.Hello{Session: seq[[16]byte](1), Token: []byte{}, Word: seq[[8]byte](0x50),
		Representation: frame.Binary, Stages: 7, Limits: limits, Target: "https://camera.example:443/soap"},
	"hello-described": frame.Hello{Session: seq[[16]byte](1), Token: []byte{}, Word: seq[[8]byte](0x58),
		Representation: frame.Binary, Stages: 7, Limits: limits, Target: "https://camera.example:443/soap",
		Description: fromHex("c0c1c2c3c4c5c6c7")},
	"hello-abilities": frame.Hello{Proxy: true, Session: seq[[16]byte](1), Token: []byte{}, Word: seq[[8]byte](0x58),
		Representation: frame.Binary, Stages: 7, Limits: limits, Abilities: 1},
	"hello-far": frame.Hello{Session: seq[[16]byte](1), Token: []byte{}, Word: seq[[8]byte](0x58),
		Representation: frame.Binary, Stages: 7, Limits: far},
	"hello-brief-initiator": brief(frame.Hello{Proxy: true, Representation: frame.Binary, Stages: 7, Limits: usual,
		Token: []byte{}, Abilities: 3}),
	"hello-brief-responder": brief(frame.Hello{Responder: true, Representation: frame.Binary, Stages: 5,
		Token: fromHex("b0b1b2b3b4b5b6b7b8b9babbbcbdbebf"), Limits: limits, Lifetime: 60}),
	"shape-reference":    frame.Shape{Number: 1, Form: frame.Reference, Fingerprint: seq[[32]byte](0x80)},
	"shape-full":         frame.Shape{Number: 300, Form: frame.Full, Total: 5, Piece: []byte("shape")},
	"shape-full-piece":   frame.Shape{Number: 2, Form: frame.Full, Total: 1000, Offset: 995, Piece: []byte("piece")},
	"shape-unknown":      frame.Shape{Number: 7, Form: frame.Unknown},
	"data-small":         frame.Data{First: true, Last: true, Payload: []byte("\x01content")},
	"data-empty-body":    frame.Data{First: true, Last: true, Payload: []byte{0}},
	"data-head-and-body": frame.Data{First: true, Last: true, Head: true, Payload: []byte("\x02\x08head\x01body")},
	"data-head-goes-on":  frame.Data{First: true, Head: true, Payload: []byte("\x02\x09head")},
	"data-head-ends":     frame.Data{Head: true, Payload: []byte("\x08more\x01body")},
	"data-reply":         frame.Data{First: true, Last: true, Reply: true, Payload: []byte("\x01reply")},
	"data-one-way":       frame.Data{First: true, Last: true, OneWay: true, Payload: []byte("\x01event")},
	"data-placed": frame.Data{First: true, Last: true, OneWay: true, Place: frame.Place{Number: 1},
		Payload: []byte("\x01event")},
	"data-placed-wants": frame.Data{First: true, OneWay: true, NamesExchange: true, Exchange: 300,
		Place: frame.Place{Number: 300, Wanted: true}, Payload: []byte("\x01part")},
	"data-placed-answers": frame.Data{First: true, Last: true, OneWay: true, Head: true, Place: frame.Place{Number: 2,
		Answers: 300}, Payload: []byte("\x02\x08head\x01body")},
	"data-placed-unknown": frame.Data{First: true, Last: true, OneWay: true, Place: frame.Place{Number: 1<<62 - 1,
		Answers: 1<<62 - 1, Unknown: true}, Payload: []byte{0}},
	"data-text": frame.Data{Last: true, Text: true, NamesExchange: true, Exchange: 9,
		Payload: []byte("\x03text in place of the rest")},
	"data-names-lane": frame.Data{First: true, NamesLane: true, Lane: 200, Payload: []byte("\x01part")},
	"data-names-exchange": frame.Data{First: true, Reply: true, NamesExchange: true, Exchange: 1000,
		Payload: []byte("\x01part")},
	"data-names-both": frame.Data{Reply: true, NamesLane: true, NamesExchange: true, Lane: 1<<64 - 1,
		Exchange: 1<<64 - 1, Payload: []byte("more")},
	"sync-first": frame.Sync{Word: seq[[8]byte](0x30), Offset: 77, Session: seq[[16]byte](1),
		Representation: frame.Binary},
	"sync-full": frame.Sync{Word: seq[[8]byte](0x30), Offset: 65000, Responder: true, Session: seq[[16]byte](1),
		Representation: frame.Binary, Messages: 3, Check: 0x12345678,
		Shapes: []frame.Announced{{1, seq[[8]byte](0x80)}, {300, seq[[8]byte](0x10)}},
		Lanes:  []frame.LaneNumbers{{0, 5, 4}, {200, 0, 70000}},
		Open: []frame.Open{{frame.Key{Lane: 0, Exchange: 5}, frame.Begun | frame.HeadGoesOn, 0xdeadbeef},
			{frame.Key{Lane: 0, Reply: true, Exchange: 3}, frame.Begun | frame.BodyBegun, 1},
			{frame.Key{Lane: 200, Reply: true, Exchange: 70000}, frame.Begun | frame.BodyBegun | frame.BodyIsText, 2}}},
	"cancel-own-request": frame.Cancel{Message: frame.Key{Lane: 1, Exchange: 2}, Code: frame.Aborted},
	"cancel-own-reply": frame.Cancel{Message: frame.Key{Reply: true, Exchange: 2}, Code: frame.Failed,
		Text: "the handler failed"},
	"cancel-their-request": frame.Cancel{Message: frame.Key{Exchange: 300}, Refused: true, Code: frame.Busy,
		Text: "später"},
	"cancel-their-reply": frame.Cancel{Message: frame.Key{Reply: true, Exchange: 2}, Refused: true,
		Code: frame.Unprocessed},
	"close-done":     frame.Close{Messages: 12, Check: 0xcafebabe},
	"close-protocol": frame.Close{Code: frame.CloseProtocol, Text: "offset 99: unknown kind"},
	"idle":           frame.Idle{Lanes: []uint64{0, 5, 300}},
	"ack":            frame.Ack{Octets: []byte("abc")},
	"kept-none":      frame.Kept{},
	"kept":           frame.Kept{Messages: []frame.KeptPart{{Number: 3, Octets: 524288}, {Number: 5, Octets: 1}}},
	"resync":         frame.Resync{},
	"data-long": frame.Data{First: true, OneWay: true, Place: frame.Place{Number: 3, Wanted: true, Length: 12 << 20},
		Payload: []byte("ab")},
	"data-long-rest": frame.Data{First: true, OneWay: true, Place: frame.Place{Number: 3, Length: 12 << 20,
		From: 524288, Answers: 2}, Payload: []byte("ab")},
	"data-interim": frame.Data{First: true, Last: true, Reply: true, Interim: true, Head: true,
		Payload: []byte("\x02\x08head\x00")},
	"window":          frame.Window{Message: frame.Key{Lane: 5, Exchange: 300}, Octets: 131072},
	"window-reply":    frame.Window{Message: frame.Key{Reply: true, Exchange: 1}, Octets: 1},
	"flush":           frame.Flush{Message: frame.Key{Lane: 5, Reply: true, Exchange: 300}, Settled: 17},
	"skipped-unknown": frame.Skipped{Octet: 0x7f, Body: []byte{}},
}

func fromHex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

func role(responder bool) string {
	return map[bool]string{false: "initiator", true: "responder"}[responder]
}

func bitOf(set bool) int {
	if set {
		return 1
	}
	return 0
}

// describe has the fields of a frame under the names of docs/wire-format.md.
func describe(f frame.Frame) map[string]any {
	d := map[string]any{"kind": f.Kind().String()}
	put := func(names string, values ...any) {
		for i, name := range strings.Split(names, ",") {
			d[name] = values[i]
		}
	}
	switch f := f.(type) {
	case frame.Hello:
		l := f.Limits
		put("role,session,token,sync word,representation,stages", role(f.Responder),
			hex.EncodeToString(f.Session[:]), hex.EncodeToString(f.Token), hex.EncodeToString(f.Word[:]),
			f.Representation, f.Stages)
		put("max fragment,max message,max shapes,max shape octets,max exchanges,window,max held",
			l.MaxFragment, l.MaxMessage, l.MaxShapes, l.MaxShapeBytes, l.MaxExchanges, l.Window, l.MaxHeld)
	case frame.Shape:
		put("number,form", f.Number, []string{"reference", "full", "unknown"}[f.Form])
		switch f.Form {
		case frame.Reference:
			put("fingerprint", hex.EncodeToString(f.Fingerprint[:]))
		case frame.Full:
			put("total,offset,piece", f.Total, f.Offset, hex.EncodeToString(f.Piece))
		case frame.Unknown:
		}
	case frame.Data:
		put("F,L,R,H,T,X,Y,payload", f.First, f.Last, f.Reply || f.Place.Number != 0, f.Head, f.OneWay || f.Text ||
			f.Interim, f.NamesExchange, f.NamesLane, hex.EncodeToString(f.Payload))
		if f.NamesLane {
			put("lane", f.Lane)
		}
		if f.NamesExchange {
			put("exchange", f.Exchange)
		}
		if p := f.Place; p.Number != 0 || f.Interim {
			put("number,answers,wanted,unknown", p.Number, p.Answers, p.Wanted, p.Unknown)
		}
	case frame.Sync:
		shapes, lanes, open := []any{}, []any{}, []any{}
		for _, s := range f.Shapes {
			shapes = append(shapes, map[string]any{"number": s.Number, "name": hex.EncodeToString(s.Name[:])})
		}
		for _, l := range f.Lanes {
			lanes = append(lanes, map[string]any{"lane": l.Lane, "request": l.Request, "reply": l.Reply})
		}
		for _, o := range f.Open {
			r := byte(o.State &^ frame.Begun)
			if o.Key.Reply {
				r |= 1
			}
			open = append(open, map[string]any{"lane": o.Key.Lane, "R": r, "exchange": o.Key.Exchange, "crc": o.CRC})
		}
		put("sync word,offset,role,session,representation,stages,messages,check,shapes,lanes,open",
			hex.EncodeToString(f.Word[:]), f.Offset, role(f.Responder),
			hex.EncodeToString(f.Session[:]), f.Representation, f.Stages, f.Messages, f.Check, shapes, lanes, open)
	case frame.Cancel:
		r := 0
		if f.Message.Reply {
			r |= 1
		}
		if f.Refused {
			r |= 2
		}
		put("lane,R,exchange,code,text", f.Message.Lane, r, f.Message.Exchange, f.Code, f.Text)
	case frame.Close:
		put("code,text,messages,check", f.Code, f.Text, f.Messages, f.Check)
	case frame.Idle:
		lanes := []any{}
		for _, lane := range f.Lanes {
			lanes = append(lanes, map[string]any{"lane": lane})
		}
		put("lanes", lanes)
	case frame.Window:
		put("lane,R,exchange,octets", f.Message.Lane, bitOf(f.Message.Reply), f.Message.Exchange, f.Octets)
	case frame.Flush:
		put("lane,R,exchange,settled", f.Message.Lane, bitOf(f.Message.Reply), f.Message.Exchange, f.Settled)
	case frame.Ack:
		put("body", hex.EncodeToString(f.Octets))
	case frame.Skipped:
		put("kind,body", "skipped", hex.EncodeToString(f.Body))
	}
	return d
}

func TestVectors(t *testing.T) {
	if *update {
		require.NoError(t, os.MkdirAll(vectorDir, 0o755))
		for name, f := range frames {
			fields, err := json.MarshalIndent(describe(f), "", "  ")
			require.NoError(t, err)
			write(t, name+".json", append(fields, '\n'))
			write(t, name+".hex", []byte(hex.EncodeToString(f.AppendTo(nil))+"\n"))
		}
	}
	paths, err := filepath.Glob(filepath.Join(vectorDir, "*.hex"))
	require.NoError(t, err)
	require.Len(t, paths, len(frames), "a vector for each frame of the table, and no other")
	have := map[frame.Kind]bool{}
	for _, f := range frames {
		have[f.Kind()] = true
	}
	for kind := range frame.Kind(64) {
		assert.True(t, have[kind] || kind.String() == "unknown", "no vector of a frame %s", kind)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".hex")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			octets := fromHex(strings.TrimSpace(string(text)))
			want, ok := frames[name]
			require.True(t, ok)
			got, n, err := frame.Parse(octets, 0, 0)
			require.NoError(t, err)
			assert.Equal(t, len(octets), n)
			assert.Equal(t, want, got)
			assert.Equal(t, octets, want.AppendTo(nil))
			fields, err := os.ReadFile(strings.TrimSuffix(path, ".hex") + ".json")
			require.NoError(t, err)
			said, err := json.Marshal(describe(got))
			require.NoError(t, err)
			assert.JSONEq(t, string(fields), string(said))
		})
	}
}

func write(t *testing.T, name string, b []byte) {
	require.NoError(t, os.WriteFile(filepath.Join(vectorDir, name), b, 0o644))
}
