package streamer_test

import (
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/workload"
	"github.com/hhfr/hhfr/pkg/streamer/inproc"
)

// shuffled is a connection that carries messages each for itself, in an order that chance makes. Each arrives when a later one does, or soon after nothing more is written.
type shuffled struct {
	net.Conn
	most int // messages that wait at once; 0: none, what is written arrives in its order

	mu      sync.Mutex
	rnd     *rand.Rand
	tell    func(uint64)
	waiting []piece
	last    uint64          // number of the last one written
	arrived map[uint64]bool // above all
	all     uint64          // all up to there arrived
	mute    bool            // nothing is acknowledged
}

type piece struct {
	number uint64
	octets []byte
}

// shuffledPipe is an [inproc.Pipe] of two of them.
func shuffledPipe(buffer, most int, seed uint64) (here, there *shuffled) {
	a, b := inproc.Pipe(buffer)
	return &shuffled{Conn: a, most: most, rnd: rand.New(rand.NewPCG(seed, 21)), arrived: map[uint64]bool{}}, &shuffled{Conn: b, most: most, rnd: rand.New(rand.NewPCG(seed, 22)), arrived: map[uint64]bool{}}
}

func (c *shuffled) MayUnorder() bool { return true }

func (c *shuffled) Unorder(acknowledged func(uint64)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tell = acknowledged
}

func (c *shuffled) WriteMessages(b []byte, ends []int) (n int, last uint64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, end := range ends {
		c.last++
		c.waiting = append(c.waiting, piece{c.last, append([]byte(nil), b[n:end]...)})
		n = end
		if err := c.pass(c.most); err != nil {
			return n, c.last, err
		}
	}
	time.AfterFunc(100*time.Microsecond, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		_ = c.pass(0) // who writes next is told
	})
	return n, c.last, nil
}

// pass has messages arrive until no more than so many wait.
func (c *shuffled) pass(most int) error {
	for len(c.waiting) > most {
		i := c.rnd.IntN(len(c.waiting))
		p := c.waiting[i]
		c.waiting = append(c.waiting[:i], c.waiting[i+1:]...)
		if _, err := c.Write(p.octets); err != nil {
			return err
		}
		c.arrived[p.number] = true
		for c.arrived[c.all+1] {
			c.all++
			delete(c.arrived, c.all)
		}
		if c.tell != nil && !c.mute {
			c.tell(c.all)
		}
	}
	return nil
}

func (c *shuffled) CloseWrite() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.pass(0); err != nil {
		return err
	}
	return c.Conn.(interface{ CloseWrite() error }).CloseWrite()
}

// TestRandomSessionsInAnyOrder is [TestRandomSessions] over unordered streams.
func TestRandomSessionsInAnyOrder(t *testing.T) {
	material := append(shared.Envelopes(t, false), workload.Mixed(5)...)
	for seed := range uint64(40) {
		runSession(t, seed, material, true)
	}
}
