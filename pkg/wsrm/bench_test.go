package wsrm_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/wsrm"
)

// pair is two engines with nothing between them but the octets of datagrams, half a millisecond apart, and an application that commits at once.
type pair struct {
	t         testing.TB
	now       time.Time
	ends      [2]*wsrm.Engine
	datagrams [2][][]byte // on their way to that end
	spare     [][]byte
	parsed    wsrm.Packet
	commits   []uint64
	delivered int
	done      uint64 // acknowledged at end 0
	drop      int    // every so many datagrams; 0: none
	sent      int
}

func newPair(t testing.TB, cfg wsrm.Config) *pair {
	p := &pair{t: t, now: start}
	for i := range p.ends {
		var err error
		p.ends[i], err = wsrm.New(cfg)
		require.NoError(t, err)
	}
	return p
}

func (p *pair) step(end int, ev wsrm.Event) error {
	actions, err := p.ends[end].Step(p.now, ev)
	for i := range actions {
		switch a := &actions[i]; a.Kind {
		case wsrm.Transmit:
			var b []byte
			if n := len(p.spare); n > 0 {
				b, p.spare = p.spare[n-1], p.spare[:n-1]
			}
			b = p.ends[end].Codec().Append(b[:0], a.Packet)
			if p.sent++; p.drop > 0 && p.sent%p.drop == 0 {
				p.spare = append(p.spare, b)
				continue
			}
			p.datagrams[1-end] = append(p.datagrams[1-end], b)
		case wsrm.Deliver:
			p.delivered++
			p.commits = append(p.commits, a.Number)
		case wsrm.Acknowledged:
			p.done = a.Number
		default:
		}
	}
	return err
}

// must is require.NoError without its cost, which is more than the engine's.
func (p *pair) must(err error) {
	if err != nil {
		p.t.Fatal(err)
	}
}

// turn lets half a millisecond pass: what is on its way arrives, then both ends send.
func (p *pair) turn() {
	p.now = p.now.Add(500 * time.Microsecond)
	for end := range p.ends {
		for _, b := range p.datagrams[end] {
			p.must(p.ends[end].Codec().Parse(b, &p.parsed))
			p.must(p.step(end, wsrm.Event{Kind: wsrm.Arrived, Packet: &p.parsed}))
			for _, number := range p.commits {
				p.must(p.step(end, wsrm.Event{Kind: wsrm.Committed, Number: number}))
			}
			p.commits = p.commits[:0]
			p.spare = append(p.spare, b)
		}
		p.datagrams[end] = p.datagrams[end][:0]
	}
	for end := range p.ends {
		p.must(p.step(end, wsrm.Event{Kind: wsrm.Wake}))
	}
}

// carry sends n messages and lets time pass until all are done.
func (p *pair) carry(message []byte, n int) {
	goal := p.done + uint64(n)
	for p.done < goal {
		for n > 0 && p.step(0, wsrm.Event{Kind: wsrm.Send, Message: message}) == nil {
			n--
		}
		p.turn()
	}
}

func configs() (all []wsrm.Config) {
	for _, ordered := range []bool{true, false} {
		for _, assurance := range []wsrm.Assurance{wsrm.AtLeastOnce, wsrm.ExactlyOnce} {
			all = append(all, wsrm.Config{Assurance: assurance, Ordered: ordered, Window: 4096, Datagram: 1472})
		}
	}
	return all
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	message := make([]byte, 45)
	for _, cfg := range configs() {
		for _, drop := range []int{0, 50} {
			p := newPair(t, cfg)
			p.drop = drop
			p.carry(message, 50_000)
			got := testing.AllocsPerRun(5, func() { p.carry(message, 5000) })
			assert.Zero(t, got, "%v, ordered %v, every %dth datagram lost: allocations for 5000 messages", cfg.Assurance, cfg.Ordered, drop)
		}
	}
}

// One message is: accepted, put into a datagram, written, read, delivered, committed, acknowledged; on one core.
func BenchmarkMessages(b *testing.B) {
	for _, cfg := range configs() {
		for _, drop := range []int{0, 50} {
			b.Run(fmt.Sprintf("%v/ordered=%v/drop=%d", cfg.Assurance, cfg.Ordered, drop), func(b *testing.B) {
				p := newPair(b, cfg)
				p.drop = drop
				message := make([]byte, 45)
				p.carry(message, 50_000)
				b.ReportAllocs()
				b.ResetTimer()
				p.carry(message, b.N)
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
			})
		}
	}
}
