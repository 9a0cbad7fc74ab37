package capture_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/wire"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// said is a message as a decoder gives it, with everything that the check of a stream covers.
func said(m *capture.Decoded) string {
	b, _ := json.Marshal(struct {
		Session       [16]byte
		Lane, Number  uint64
		Reply, OneWay bool
		Place         frame.Place
		Head, Body    []byte
	}{m.Session, m.Lane, m.Exchange, m.Reply, m.OneWay, m.Place, m.Head, m.Body})
	return string(b)
}

// damage decodes a damaged input, and compares.
type damage struct {
	decode func(input []byte) *capture.Result
	right  map[string]bool
	input  []byte
}

func newDamage(t *testing.T, input []byte, decode func(input []byte) *capture.Result) *damage {
	t.Helper()
	d := &damage{decode: decode, right: map[string]bool{}, input: input}
	for _, m := range decode(input).Messages {
		if m.HHFR {
			require.Equal(t, capture.Verified, m.State, "%s %s", m.Operation.Local, m.Why)
			d.right[said(m)] = true
		}
	}
	require.NotEmpty(t, d.right)
	return d
}

// verified counts the messages of a damaged input that are verified, and fails for one that is not
// what was sent.
func (d *damage) verified(t *testing.T, input []byte, what string) (n int) {
	for _, m := range d.decode(input).Messages {
		if m.State != capture.Verified {
			continue
		}
		if n++; !d.right[said(m)] {
			assert.Fail(t, "verified, and not what was sent", "%s: %s", what, said(m))
		}
	}
	return n
}

// flips flips every bit in turn, or one in so many.
func (d *damage) flips(t *testing.T, step int) {
	damaged := bytes.Clone(d.input)
	verified := 0
	for bit := 0; bit < 8*len(damaged) && !t.Failed(); bit += step {
		damaged[bit/8] ^= 1 << (bit % 8)
		verified += d.verified(t, damaged, fmt.Sprintf("bit %d of byte %d flipped", bit%8, bit/8))
		damaged[bit/8] ^= 1 << (bit % 8)
	}
	t.Logf("%d bytes; %.1f of %d messages verified with a bit flipped", len(d.input),
		float64(verified)*float64(step)/float64(8*len(d.input)), len(d.right))
	assert.Positive(t, verified, "the test shows nothing")
}

// random damages the input in the ways of bad disks and relays.
func (d *damage) random(t *testing.T, runs int) {
	rnd := rand.New(rand.NewPCG(uint64(len(d.input)), 1))
	for i := 0; i < runs && !t.Failed(); i++ {
		b := bytes.Clone(d.input)
		for range 1 + rnd.IntN(4) {
			if len(b) < 2 {
				break
			}
			at, n := rnd.IntN(len(b)), 1+rnd.IntN(40)
			to := min(at+n, len(b))
			switch rnd.IntN(6) {
			case 0:
				b[at] = byte(rnd.Uint32())
			case 1:
				clear(b[at:to])
			case 2:
				b = append(b[:at:at], b[to:]...)
			case 3:
				b = append(b[:to:to], b[at:]...)
			case 4:
				from := rnd.IntN(len(b))
				copy(b[at:to], b[from:])
			case 5:
				b = b[:max(at, 1)]
			}
		}
		d.verified(t, b, fmt.Sprintf("random damage %d", i))
	}
}

// taped is a connection whose written bytes are kept.
type taped struct {
	net.Conn
	mu   sync.Mutex
	tape []byte
}

func (c *taped) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tape = append(c.tape, p[:n]...)
	return n, err
}

// kind is a kind of stream that recordings are made of.
type kind struct {
	name     string
	options  binary.Options
	xml      bool
	stream   streamer.Config
	known    bool // both ends know the shapes, and so does the decoder's store
	messages []*streamer.Message
}

func envelope(operation, header, body string) string {
	return `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/">` + header + `<s:Body><` + operation + `>` +
		body + `</` + operation + `></s:Body></s:Envelope>`
}

func text(head, body string) *streamer.Message {
	if head == "" {
		return streamer.NewMessage(nil, []byte(body))
	}
	return streamer.NewMessage([]byte(head), []byte(body))
}

// kinds has every stage on and off, both representations, announcements in full and by name, syncs,
// heads, messages of several frames, and messages that travel as text.
func kinds() []kind {
	head := "POST /a HTTP/1.1\r\nSOAPAction: \"q\"\r\n\r\n"
	few := func() []*streamer.Message {
		return []*streamer.Message{text("", envelope("a", "", "<n>1</n>")), text(head, envelope("a", "", "<n>22</n>")),
			text("", envelope("a", "", "<n>22</n>")), text("", "no XML")}
	}
	long := func() []*streamer.Message {
		odd := envelope("b", "",
			"<n>1</n>"+strings.Repeat("<v>12.5</v>", 60)+"<n><!-- "+strings.Repeat("odd ", 120)+"--></n>")
		return []*streamer.Message{text("", envelope("b", "", "<n>1</n>"+strings.Repeat("<v>12.5</v>", 10))),
			text(head+strings.Repeat("x", 600), odd), text("", odd)}
	}
	stage := func(name string, without uint64) kind {
		return kind{name: name, options: binary.Options{Without: without}, messages: few()}
	}
	return []kind{
		stage("all stages", 0),
		stage("without zstd", wire.Zstd),
		stage("columns alone", wire.Zstd|wire.Memory),
		stage("zstd alone", wire.Columns|wire.Memory),
		stage("no stages", wire.Zstd|wire.Columns|wire.Memory),
		{name: "xml", options: binary.Options{Text: true}, xml: true, messages: few()},
		{name: "syncs", stream: streamer.Config{SyncMessages: 1}, messages: few()},
		{name: "store", known: true, messages: few()},
		{name: "store and syncs", known: true, stream: streamer.Config{SyncMessages: 2}, messages: few()},
		{
			name:     "fragments",
			stream:   streamer.Config{Limits: streamer.Limits{MaxFragment: 512}, SyncBytes: 700},
			messages: long(),
		},
	}
}

// recordStream sends the messages of a kind over a stream in memory: some as requests that are
// echoed, some one-way, on two lanes, some in a sequence. It returns the bytes of the directions,
// and the store of the responder.
func recordStream(t *testing.T, k kind) (out, back []byte, store ctxstore.Store) {
	t.Helper()
	here, there := inproc.Pipe(1 << 20)
	a, b := &taped{Conn: here}, &taped{Conn: there}
	store = memory.New(memory.Config{})
	book := [2]*binary.Book{binary.NewBook(ctxstore.Shapes{Store: memory.New(memory.Config{})}),
		binary.NewBook(ctxstore.Shapes{Store: store})}
	if k.known {
		for _, m := range k.messages {
			body, err := m.ReadAll(1 << 20)
			require.NoError(t, err)
			m.Body = bytes.NewReader(body)
			for range 2 {
				for i := range book {
					cut := book[i].Coder(binary.Options{}).Split(0, 16000, func(bool, wire.Part) error { return nil })
					err := errors.Join(cut.Head(m.Head), cut.All(body))
					require.NoError(t, err)
				}
			}
		}
		k.options.PeerKnows = book[0].Known(64)
	}
	coder := [2]*binary.Coder{book[0].Coder(k.options), book[1].Coder(k.options)}
	responder, initiator := k.stream, k.stream
	responder.Accept = func(context.Context, frame.Hello) (streamer.Admission, error) {
		return streamer.Admission{Coder: coder[1], Handler: func(ctx context.Context, x *streamer.Exchange) {
			body, err := x.Message().ReadAll(1 << 20)
			assert.NoError(t, err)
			if !x.OneWay() {
				assert.NoError(t, x.Reply(ctx, streamer.NewMessage(nil, body)))
			}
		}}, nil
	}
	var server *streamer.Stream
	var met sync.WaitGroup
	met.Go(func() {
		s, err := streamer.Over(t.Context(), b, responder)
		assert.NoError(t, err)
		server = s
	})
	initiator.Initiator, initiator.Session, initiator.Token, initiator.Coder = true, [16]byte{9, 8,
		7}, make([]byte, frame.TokenLen), coder[0]
	if initiator.Representation = frame.Binary; k.xml {
		initiator.Representation = frame.XML
	}
	client, err := streamer.Over(t.Context(), a, initiator)
	require.NoError(t, err)
	met.Wait()
	for i, m := range k.messages {
		body, err := m.ReadAll(1 << 20)
		require.NoError(t, err)
		reply, err := client.Lane(1+uint64(i%2)).Call(t.Context(), streamer.NewMessage(m.Head, body))
		require.NoError(t, err)
		_, err = reply.ReadAll(1 << 20)
		require.NoError(t, err)
		require.NoError(t, client.Lane(3).Send(t.Context(), streamer.NewMessage(m.Head, body)))
		placed := streamer.NewMessage(nil, body)
		placed.Place = streamer.Place{Number: uint64(i + 1), Wanted: i%2 == 0}
		require.NoError(t, client.Lane(0).Send(t.Context(), placed))
	}
	require.NoError(t, client.Close())
	require.NoError(t, server.Close())
	return a.tape, b.tape, store
}

// Law 3: whatever bit of a recorded stream is flipped, and whatever else happens to its bytes, no
// message is given as verified that is not what was sent.
func TestNothingDamagedIsVerified(t *testing.T) {
	const octets = 150 // whose every bit is flipped; of what is longer as many bits
	damageStreams(t, func(d *damage) {
		d.flips(t, max(1, len(d.input)/shared.Some(octets)))
		d.random(t, shared.Some(150))
	})
}

// The same where one byte affects many messages, such as their lane and first exchange: each is
// four bytes longer than the one before, so that the changes in their checks are as far apart as
// the checks.
func TestNothingSaidOfManyMessagesIsVerifiedWrongly(t *testing.T) {
	hello := frame.Hello{
		Token:          make([]byte, frame.TokenLen),
		Representation: frame.XML,
		Limits:         frame.Limits{MaxFragment: 512},
	}
	octets, checks := hello.AppendTo(nil), frame.NewChecks(frame.OriginOf(hello))
	for i := range 4 {
		d := frame.Data{
			First:         true,
			Last:          true,
			OneWay:        true,
			Lane:          4,
			Exchange:      uint64(8 + i),
			NamesLane:     i == 0,
			NamesExchange: i == 0,
			Payload:       []byte("\x00" + envelope("a", "", strings.Repeat("four", i))),
		}
		octets = d.AppendTo(octets)
		parts, err := checks.Cut(&d, 0, 0)
		require.NoError(t, err)
		checks.Add(&d, &parts, nil)
	}
	octets = frame.Close{Messages: checks.Messages(), Check: checks.Check()}.AppendTo(octets)
	newDamage(t, octets, func(input []byte) *capture.Result {
		r, err := decodeStreams(t, []run{{"out", input}}, capture.DecodeConfig{})
		if err != nil {
			return &capture.Result{}
		}
		return r
	}).flips(t, 1)
}

// damageStreams calls damage for both directions of a stream of each kind.
func damageStreams(t *testing.T, damage func(d *damage)) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			out, back, store := recordStream(t, k)
			for i, direction := range [][]byte{out, back} {
				damage(newDamage(t, direction, func(input []byte) *capture.Result {
					both := [2][]byte{out, back}
					both[i] = input
					cfg := capture.DecodeConfig{}
					if k.known {
						cfg.Store = store
					}
					r, err := decodeStreams(t, []run{{"out", both[0]}, {"back", both[1]}}, cfg)
					if err != nil {
						return &capture.Result{}
					}
					return r
				}))
			}
		})
	}
}

// The same for captures: the flipped bit may be in the length of a packet, an address, or the
// number of a datagram.
func TestNothingDamagedInACaptureIsVerified(t *testing.T) {
	for _, name := range []string{"session.pcapng", "datagrams.pcap", "upgraded.pcapng"} {
		t.Run(name, func(t *testing.T) {
			d := damagedCapture(t, name)
			d.flips(t, 8*len(d.input)/shared.Some(200))
			d.random(t, shared.Some(50))
		})
	}
}

// What was agreed on travels as plain SOAP, which nothing checks.
func TestNothingDamagedInAnAgreementIsVerified(t *testing.T) {
	d := damagedIn(t, record(t, withHeaders()[:8], 4096, tenant, replyTo).file)
	d.flips(t, 8*len(d.input)/400)
	d.random(t, 50)
}

func damagedCapture(t *testing.T, name string) *damage {
	t.Helper()
	return damagedIn(t, shared.Read(t, shared.Testdata(t, "pcap", name)))
}

func damagedIn(t *testing.T, file []byte) *damage {
	t.Helper()
	return newDamage(t, file, func(input []byte) *capture.Result {
		r, err := capture.Decode(context.Background(), bytes.NewReader(input), capture.DecodeConfig{})
		if err != nil {
			return &capture.Result{}
		}
		return r
	})
}

// From a pipe, where messages are given before their checks.
func TestNothingDamagedInAPipeIsVerified(t *testing.T) {
	d := newDamage(t, shared.Read(t, shared.Testdata(t, "pcap", "session.pcapng")), func(input []byte) *capture.Result {
		r, err := capture.Decode(context.Background(), once{bytes.NewReader(input)}, capture.DecodeConfig{})
		if err != nil {
			return &capture.Result{}
		}
		return r
	})
	d.flips(t, 8*len(d.input)/200)
	d.random(t, 50)
}
