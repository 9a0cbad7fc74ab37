package streamer_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/frame"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// watched is a socket whose packets are looked at: those it sends, true, and those it reads.
type watched struct {
	net.PacketConn
	look func(sent bool, p *wsrm.Packet) (pass bool)
}

func (s watched) packet(sent bool, b []byte) bool {
	var p wsrm.Packet
	d, ok := udp.Parse(b)
	return !ok || d.Packet == nil || udp.Codec.Parse(d.Packet, &p) != nil || s.look(sent, &p)
}

func (s watched) WriteTo(b []byte, to net.Addr) (int, error) {
	if !s.packet(true, b) {
		return len(b), nil
	}
	return s.PacketConn.WriteTo(b, to)
}

func (s watched) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := s.PacketConn.ReadFrom(b)
	if err == nil {
		s.packet(false, b[:n])
	}
	return n, from, err
}

// wire puts the frames of a direction together from the units as they are sent for the first time.
type wire struct {
	t         *testing.T
	next      uint64 // unit
	message   []byte
	fragments frame.Fragments
	states    map[frame.Key]*frame.MessageState
	announced map[uint64]uint64 // by shape number, the unit that completes its announcement
	pieces    frame.Pieces
	done      uint64
	used      map[uint64]int
}

func (w *wire) look(sent bool, p *wsrm.Packet) bool {
	if !sent {
		w.done = max(w.done, p.Ack.Done)
		return true
	}
	for _, u := range p.Units {
		if u.Number != w.next {
			continue
		}
		w.next++
		if w.message = append(w.message, u.Payload...); u.Last {
			w.frames(u.Number)
			w.message = nil
		}
	}
	return true
}

func (w *wire) frames(unit uint64) {
	for b := w.message; len(b) > 0; {
		f, n, err := frame.Parse(b, 0, 0)
		if !assert.NoError(w.t, err) || !assert.Positive(w.t, n, "a message has whole frames") {
			return
		}
		b = b[n:]
		switch f := f.(type) {
		case frame.Shape:
			if f.Form == frame.Reference {
				w.announced[f.Number] = unit // if the shape is asked for, messages under way may use the number all the same
				continue
			}
			full, err := w.pieces.Add(f, 0)
			assert.NoError(w.t, err)
			if _, before := w.announced[f.Number]; full != nil && !before {
				w.announced[f.Number] = unit
			}
		case frame.Data:
			ready, err := w.fragments.Take(f, 0)
			assert.NoError(w.t, err)
			for _, d := range ready {
				w.data(&d)
			}
		}
	}
}

func (w *wire) data(d *frame.Data) {
	if d.First {
		w.states[d.Key()] = new(frame.MessageState)
	}
	parts, err := w.states[d.Key()].Cut(d, 0)
	assert.NoError(w.t, err)
	for _, p := range []frame.Part{parts.Head, parts.Body} {
		if p.First && p.Shape != 0 {
			unit, announced := w.announced[p.Shape]
			assert.True(w.t, announced && unit <= w.done, "number %d is announced in unit %d, and units up to %d are acknowledged", p.Shape, unit, w.done)
		}
		if p.First {
			w.used[p.Shape]++
		}
	}
}

// A number is used once the other end has acknowledged its announcement; until then messages go whole.
func TestNumbersAreUsedOnceAcknowledged(t *testing.T) {
	for seed := range 10 {
		synctest.Test(t, func(t *testing.T) {
			w := &wire{t: t, next: 1, states: map[frame.Key]*frame.MessageState{}, announced: map[uint64]uint64{}, used: map[uint64]int{},
				pieces: frame.Pieces{MaxShapes: 9, MaxBytes: 1 << 20}, fragments: frame.Fragments{MaxEarly: 9, MaxBytes: 1 << 20}}
			here, there := overLink(t, fmt.Sprintf("edge,loss=10%%,seed=%d", seed), func(near, far net.PacketConn) (net.PacketConn, net.PacketConn) {
				return watched{near, w.look}, far
			})
			a, b := newRawCoder(), newRawCoder()
			a.shapes[1], a.shapes[2], a.shapes[3], a.refer[3] = []byte("one"), []byte(strings.Repeat("large", 2000)), []byte("three"), true
			b.shapes = a.shapes
			p := connectOver(t, pairing{a: streamer.Config{Unordered: true}, codera: a, coderb: b, handlerb: echo}, here, there)
			var all sync.WaitGroup
			for i := range 60 {
				all.Go(func() {
					m := fmt.Sprintf("#%d %d %s", 1+i%3, i, strings.Repeat("x", i))
					r, err := p.a.Lane(0).Call(t.Context(), streamer.NewMessage(nil, []byte(m)))
					if assert.NoError(t, err) {
						assert.Equal(t, m, body(t, r))
					}
				})
				time.Sleep(200 * time.Millisecond)
			}
			all.Wait()
			for number := range uint64(4) {
				assert.Positive(t, w.used[number], "number %d is never used: the test shows nothing", number)
			}
			closeBoth(t, p)
		})
	}
}

// A datagram that is lost delays the messages that were in it, and no other.
func TestLostDatagramDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := map[uint64]bool{}
		here, there := overLink(t, "lte", func(near, far net.PacketConn) (net.PacketConn, net.PacketConn) {
			return watched{near, func(sent bool, p *wsrm.Packet) bool {
				if n := len(p.Units); sent && n > 0 && p.Units[0].Number%10 == 5 && !lost[p.Units[0].Number] {
					lost[p.Units[0].Number] = true
					return false
				}
				return true
			}}, far
		})
		var mu sync.Mutex
		sent, took := map[string]time.Time{}, map[string]time.Duration{}
		p := connectOver(t, pairing{a: streamer.Config{Unordered: true}, handlerb: func(_ context.Context, x *streamer.Exchange) {
			b, err := x.Message().ReadAll(100)
			assert.NoError(t, err)
			mu.Lock()
			defer mu.Unlock()
			took[string(b)] = time.Since(sent[string(b)])
		}}, here, there)
		for i := range 100 {
			m := fmt.Sprint(i)
			mu.Lock()
			sent[m] = time.Now()
			mu.Unlock()
			require.NoError(t, p.a.Lane(0).Send(t.Context(), streamer.NewMessage(nil, []byte(m))))
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		closeBoth(t, p)
		require.Len(t, took, 100)
		late := 0
		for _, d := range took {
			if d > 26*time.Millisecond { // the way takes 25
				late++
			}
		}
		assert.Equal(t, 10, late)
		assert.Len(t, lost, 10)
	})
}

// meetUnordered is [meetByHand] over a connection that carries messages each for itself; the stream's ends come back.
func meetUnordered(t testing.TB, cfg streamer.Config, coder streamer.Coder, handler streamer.Handler) *byHand {
	t.Helper()
	here, there := shuffledPipe(8<<20, 0, 1)
	h := &byHand{t: t, conn: here}
	cfg.Accept = func(context.Context, frame.Hello) (streamer.Coder, streamer.Handler, error) {
		return coder, handler, nil
	}
	hello := handHello
	hello.Unordered = true
	h.write(hello)
	var err error
	h.s, err = streamer.Over(context.Background(), there, cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = here.Close()
		h.s.Abort(frame.CloseGoingAway, "")
	})
	back, ok := h.next().(frame.Hello)
	require.True(t, ok && back.Unordered)
	return h
}

// sealed are data frames of one unordered direction.
func sealed(frames ...frame.Data) (all []frame.Frame) {
	var s frame.Seals
	for _, f := range frames {
		s.Seal(&f, nil)
		all = append(all, f)
	}
	return all
}

// Whatever the order in which frames come, fragments, close and all, the messages are read, and the close counts.
func TestFramesInAnyOrderByHand(t *testing.T) {
	frames := append(sealed(
		frame.Data{First: true, Exchange: 1, Payload: []byte("\x00one ")},
		frame.Data{Exchange: 1, Payload: []byte("two ")},
		frame.Data{Last: true, Exchange: 1, Payload: []byte("three")},
		frame.Data{First: true, Last: true, Exchange: 2, Lane: 7, Payload: []byte("\x00alone")},
	), frame.Close{Messages: 4})
	for _, order := range [][]int{{0, 1, 2, 3, 4}, {2, 1, 0, 3, 4}, {4, 3, 2, 1, 0}, {1, 4, 3, 0, 2}} {
		h := meetUnordered(t, streamer.Config{}, newRawCoder(), echo)
		for _, i := range order {
			h.write(frames[i])
		}
		var fragments frame.Fragments
		got := map[uint64]string{}
		for {
			f := h.next()
			if c, ok := f.(frame.Close); ok {
				assert.Equal(t, frame.CloseDone, c.Code, c.Text)
				assert.EqualValues(t, 2, c.Messages)
				break
			}
			d, ok := f.(frame.Data)
			require.True(t, ok, "%T", f)
			ready, err := fragments.Take(d, 0)
			require.NoError(t, err)
			require.Len(t, ready, 1)
			got[d.Exchange] = string(ready[0].Payload)
		}
		assert.Equal(t, map[uint64]string{1: "\x00one two three", 2: "\x00alone"}, got)
		require.NoError(t, h.conn.(interface{ CloseWrite() error }).CloseWrite())
		assert.NoError(t, h.s.Close())
	}
}

// What hostile ends send is bounded, and told.
func TestBrokenRulesOfUnorderedStreams(t *testing.T) {
	later := func(exchange, number uint64, content string) frame.Data {
		return frame.Data{NamesExchange: true, Exchange: exchange, Payload: append(binaryUvarint(number), content...)}
	}
	early := func(n int, content string) (all []frame.Frame) {
		for i := range n {
			all = append(all, later(uint64(1+i), 1, content))
		}
		return all
	}
	var open []frame.Data
	for i := range 2*(4+100) + 64 + 1024 + 1 {
		open = append(open, frame.Data{First: true, OneWay: true, Exchange: uint64(1 + i), Payload: []byte{0}})
	}
	first := frame.Data{First: true, Exchange: 1, Payload: []byte("\x00a")}
	wrong := sealed(frame.Data{First: true, Last: true, Exchange: 1, Payload: []byte("\x00a")})[0].(frame.Data)
	wrong.Payload[1]++
	sync := frame.Sync{Word: handHello.Word, Session: session, Representation: 1}
	other := sync
	other.Offset = 9
	listing := sync
	listing.Shapes = []frame.Announced{{Number: 1}}
	for name, tc := range map[string]struct {
		frames []frame.Frame
		code   streamer.Code
	}{
		"early fragments for ever":   {early(1025, "x"), streamer.BeyondLimits},
		"early octets for ever":      {early(129, strings.Repeat("x", 8200)), streamer.BeyondLimits},
		"a gap that never fills":     {[]frame.Frame{later(1, 1<<63, "x"), later(1, 1<<64-1, "x"), later(1, 1<<63, "x")}, streamer.Protocol},
		"fragment 0 later":           {[]frame.Frame{later(1, 0, "x")}, streamer.Protocol},
		"exchange is not named":      {[]frame.Frame{frame.Data{First: true, Last: true, Payload: []byte("\x00xxxxx")}}, streamer.Protocol},
		"wrong check":                {[]frame.Frame{wrong}, streamer.WrongCheck},
		"no check":                   {[]frame.Frame{frame.Data{First: true, Last: true, NamesExchange: true, Exchange: 1, Payload: []byte("\x00a")}}, streamer.Protocol},
		"first fragment twice":       {append(sealed(first), sealed(first)...), streamer.Protocol},
		"fragment behind the last":   {append([]frame.Frame{later(1, 2, "x")}, sealed(first, frame.Data{Last: true, Exchange: 1})...), streamer.Protocol},
		"request twice":              {append(sealed(first), sealed(frame.Data{First: true, Last: true, Exchange: 1, Payload: []byte("\x00a")})...), streamer.Protocol},
		"reply to nothing":           {sealed(frame.Data{First: true, Last: true, Reply: true, Exchange: 1, Payload: []byte{0}}), streamer.Protocol},
		"shape not announced":        {sealed(frame.Data{First: true, Last: true, Exchange: 1, Payload: []byte{5}}), streamer.Protocol},
		"sync of other word":         {[]frame.Frame{frame.Sync{Session: session}}, streamer.WrongCheck},
		"sync with an offset":        {[]frame.Frame{other}, streamer.WrongCheck},
		"sync of unknown shape":      {[]frame.Frame{listing}, streamer.WrongCheck},
		"more than the close counts": {append(sealed(first), frame.Close{}), streamer.WrongCheck},
		"too many open":              {sealed(open...), streamer.BeyondLimits},
	} {
		t.Run(name, func(t *testing.T) {
			h := meetUnordered(t, streamer.Config{Limits: streamer.Limits{MaxExchanges: 4}}, newRawCoder(), func(ctx context.Context, x *streamer.Exchange) {
				_, _ = io.Copy(io.Discard, x.Message().Body)
				<-ctx.Done()
			})
			h.write(tc.frames...)
			assert.Equal(t, tc.code.String(), until[frame.Close](h).Code.String())
			require.NoError(t, h.conn.Close())
			<-h.s.Done()
			assert.ErrorIs(t, h.s.Err(), &streamer.Error{Code: tc.code})
		})
	}
}

// Frames that a close speaks of and that never come are no end in order.
func TestUnorderedCloseWithoutAllFrames(t *testing.T) {
	h := meetUnordered(t, streamer.Config{}, newRawCoder(), echo)
	h.write(frame.Close{Messages: 1})
	require.NoError(t, h.conn.(interface{ CloseWrite() error }).CloseWrite())
	<-h.s.Done()
	assert.ErrorIs(t, h.s.Err(), io.ErrUnexpectedEOF)
}

// initiatorByHand is a stream under test that asked for an unordered one, over a connection whose messages nobody acknowledges, and the other end, by hand, which says so or not.
func initiatorByHand(t *testing.T, confirms bool, coder streamer.Coder) (*byHand, *shuffled) {
	t.Helper()
	here, there := shuffledPipe(1<<20, 0, 1)
	here.mute = true
	h := &byHand{t: t, conn: there}
	hello := handHello
	hello.Responder, hello.Token, hello.Unordered = true, nil, confirms
	met := make(chan error, 1)
	go func() {
		var err error
		h.s, err = streamer.Over(context.Background(), here, streamer.Config{Initiator: true, Session: session, Token: make([]byte, 16), Representation: 1, Coder: coder, Unordered: true})
		met <- err
	}()
	asked, ok := h.next().(frame.Hello)
	require.True(t, ok && asked.Unordered)
	h.write(hello)
	require.NoError(t, <-met)
	t.Cleanup(func() {
		_ = there.Close()
		h.s.Abort(streamer.CloseGoingAway, "")
	})
	return h, here
}

// acknowledge has all arrive that was written, and the stream hear of it.
func (c *shuffled) acknowledge() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tell(c.last)
}

// A cancel leaves when all before it is acknowledged, as do numbers and further announcements.
func TestWhatWaitsForAcknowledgements(t *testing.T) {
	coder := newRawCoder()
	coder.shapes[1], coder.shapes[2] = []byte("one"), make([]byte, 6000)
	h, conn := initiatorByHand(t, true, coder)
	ctx, cancel := context.WithCancel(t.Context())
	given := make(chan error, 1)
	go func() {
		_, err := h.s.Lane(0).Call(ctx, streamer.NewMessage(nil, []byte("#1 given up")))
		given <- err
	}()
	assert.Equal(t, "one", string(h.next().(frame.Shape).Piece))
	assert.Contains(t, string(h.next().(frame.Data).Payload), "\x00#1 given up")
	cancel()
	assert.ErrorIs(t, <-given, context.Canceled)
	send := func(m string) {
		require.NoError(t, h.s.Lane(0).Send(t.Context(), streamer.NewMessage(nil, []byte(m))))
	}
	send("#1 whole")
	assert.Contains(t, string(h.next().(frame.Data).Payload), "\x00#1 whole", "neither the cancel nor the number")
	send("#2 whole")
	assert.Contains(t, string(h.next().(frame.Data).Payload), "\x00#2 whole", "one announcement after the other")
	conn.acknowledge()
	seen := map[string]bool{}
	for range 2 {
		switch f := h.next().(type) {
		case frame.Cancel:
			seen["cancel"] = f.Refused && f.Message.Reply
		case frame.Shape:
			seen["piece"] = f.Number == 2 && f.Offset == 0 && len(f.Piece) < 6000
		}
	}
	assert.Equal(t, map[string]bool{"cancel": true, "piece": true}, seen)
	becomes := func(m, want string) { // the writer takes note of an acknowledgement when it comes to it
		for tries := 0; ; tries++ {
			send(m)
			if strings.Contains(string(h.next().(frame.Data).Payload), want) {
				return
			}
			require.Less(t, tries, 100000)
		}
	}
	becomes("#1 small", "\x01#1 small")
	send("#2 whole")
	assert.Contains(t, string(h.next().(frame.Data).Payload), "\x00#2 whole")
	conn.acknowledge()
	rest := h.next().(frame.Shape)
	assert.EqualValues(t, 6000, rest.Offset+uint64(len(rest.Piece)))
	conn.acknowledge()
	becomes("#2 small", "\x02#2 small")
}

// An end that does not confirm has an ordered stream, and so has a connection that carries octets.
func TestUnorderedNeedsBothEnds(t *testing.T) {
	h, _ := initiatorByHand(t, false, newRawCoder())
	assert.False(t, h.s.Unordered())
	require.NoError(t, h.s.Lane(0).Send(t.Context(), streamer.NewMessage(nil, []byte("x"))))
	assert.False(t, until[frame.Data](h).NamesExchange)
	p := connect(t, pairing{a: streamer.Config{Unordered: true}, handlerb: echo})
	assert.False(t, p.a.Unordered() || p.b.Unordered())
	r, err := p.a.Lane(0).Call(t.Context(), streamer.NewMessage(nil, []byte("ordered")))
	require.NoError(t, err)
	assert.Equal(t, "ordered", body(t, r))
	assert.False(t, p.b.Hello().Unordered)
}
