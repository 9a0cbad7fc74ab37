package streamer_test

import (
	"context"
	"fmt"
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
