package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
	"github.com/hhfr/hhfr/pkg/workload"
)

const (
	// burstMessages messages of ten floats are sent at once; burstContent is the minimum size of
	// one of them, in bytes.
	burstMessages = 100
	burstContent  = 45
	// burstDatagrams is the number of datagrams that they fill, with burstHeaders each: IP, UDP and
	// a session's id.
	burstDatagrams = 4
	burstHeaders   = 28 + 8
	// burstKnown messages go before, so that both peers know the kind, and the first measured one
	// finds the line idle after burstRest.
	burstKnown = 3
	burstRest  = 5 * time.Second
	// burstLook is the interval of checks whether all has arrived.
	burstLook = 20 * time.Millisecond
)

// BurstResult is the result of sending a hundred messages.
type BurstResult struct {
	// Took is the time from the first message until the sender knows that all arrived; Least that
	// of their bytes by bandwidth, and two round trips.
	Took, Least time.Duration
	// Datagrams are those that the sender sent, Resent the units in them that it sent again.
	Datagrams, Resent int64
}

// Ratio is Took divided by Least.
func (r BurstResult) Ratio() float64 { return float64(r.Took) / float64(r.Least) }

// Burst sends a hundred messages of ten floats at once, one way, through everything: a stream with
// columns and memory over UDP, exactly once and in order, on an emulated link that may lose them.
// Both peers know the kind. ticks is the clock of link and sequences. Errors: those of
// link.ParseProfile; that of the stream.
func Burst(ctx context.Context, ticks clock.Clock, linkProfile string, seed uint64) (r BurstResult, err error) {
	profile, err := link.ParseProfile(linkProfile)
	if err != nil {
		return r, err
	}
	profile.Seed = seed
	var messages [][]byte
	for m := range workload.Floats(seed+1, 10) {
		if messages = append(messages, bytes.Clone(m)); len(messages) == burstKnown+burstMessages {
			break
		}
	}
	b, err := openBurst(ctx, ticks, profile)
	if err != nil {
		return r, err
	}
	defer b.close()
	if _, err := b.send(ctx, messages[:burstKnown]); err != nil {
		return r, err
	}
	if err := ticks.Sleep(ctx, burstRest); err != nil {
		return r, err
	}
	before := b.sequences.Stats()
	if r.Took, err = b.send(ctx, messages[burstKnown:]); err != nil {
		return r, err
	}
	after := b.sequences.Stats()
	r.Datagrams, r.Resent = after.Sent-before.Sent, after.Resent-before.Resent
	r.Least = time.Duration(burstMessages*burstContent+
		burstDatagrams*burstHeaders)*8*time.Second/time.Duration(profile.Bandwidth) + 2*profile.RTT
	return r, nil
}

// oneWayStream is a stream over datagrams, used in one direction.
type oneWayStream struct {
	ticks     clock.Clock
	from, to  *streamer.Stream
	sequences interface{ Stats() udp.Stats }

	mu      sync.Mutex
	arrived [][]byte
}

func openBurst(ctx context.Context, ticks clock.Clock, profile link.Profile) (*oneWayStream, error) {
	near, far, err := link.Packets(ticks, profile)
	if err != nil {
		return nil, err
	}
	// The link is what is measured; there is no wait for its end.
	cfg := udp.Config{Clock: ticks, Linger: time.Second}
	l, err := udp.Listen(far, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { _ = l.Close() }() // connections outlive it
	b := &oneWayStream{ticks: ticks}
	coder := func() *binary.Coder {
		return binary.NewBook(ctxstore.Shapes{Store: memory.New(memory.Config{})}).Coder(binary.Options{})
	}
	c, err := udp.Dial(ctx, near, far.LocalAddr(), cfg)
	if err != nil {
		return nil, err
	}
	b.sequences = c.(interface{ Stats() udp.Stats })
	there, err := l.Accept()
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	var both sync.WaitGroup
	var errs [2]error
	both.Go(func() {
		b.to, errs[0] = streamer.Over(ctx, there,
			streamer.Config{Limits: streamer.Limits{MaxExchanges: 4 * burstMessages},
				Accept: func(context.Context, frame.Hello) (streamer.Admission, error) {
					return streamer.Admission{Coder: coder(), Handler: b.take}, nil
				}})
	})
	both.Go(func() {
		b.from, errs[1] = streamer.Over(ctx, c,
			streamer.Config{Initiator: true, Token: make([]byte, frame.TokenLen), Representation: frame.Binary,
				Coder: coder()})
	})
	both.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		for _, c := range []net.Conn{c, there} {
			_ = c.Close() // the failure is already reported
		}
		return nil, err
	}
	return b, nil
}

// take is the handler.
func (b *oneWayStream) take(_ context.Context, x *streamer.Exchange) {
	body, err := x.Message().ReadAll(1 << 20)
	if err != nil {
		return // the message counts as missing
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.arrived = append(b.arrived, body)
}

func (b *oneWayStream) got() [][]byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.arrived
}

// send sends messages at once, and waits until all have arrived and this side knows it.
func (b *oneWayStream) send(ctx context.Context, messages [][]byte) (took time.Duration, err error) {
	before, began := len(b.got()), b.ticks.Now()
	for _, m := range messages {
		if err := b.from.Lane(0).Send(ctx, streamer.NewMessage(nil, m)); err != nil {
			return 0, err
		}
	}
	for len(b.got()) < before+len(messages) || b.sequences.Stats().Flight > 0 {
		if err := b.ticks.Sleep(ctx, burstLook); err != nil {
			return 0, err
		}
		select {
		case <-b.to.Done():
			return 0, errors.Join(errors.New("the stream ended"), b.to.Err())
		default:
		}
	}
	took = b.ticks.Since(began)
	got := b.got()[before:]
	for i, m := range messages {
		if !slices.ContainsFunc(got, func(one []byte) bool { return bytes.Equal(one, m) }) {
			return 0, fmt.Errorf("message %d did not arrive as it was sent", i+1)
		}
	}
	return took, nil
}

func (b *oneWayStream) close() {
	_ = b.from.Close() // the measurement is complete
	<-b.to.Done()
	_ = b.to.Close()
}
