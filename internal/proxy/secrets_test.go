package proxy_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/principal"
	"github.com/hhfr/hhfr/pkg/clock"
)

// wiretap is what an eavesdropper on the link sees of the streams between two proxies, in both
// directions.
type wiretap struct {
	mu     sync.Mutex
	octets [2]int
	tape   []byte // towards the far end, of the stream at hand
	conn   net.Conn
}

// tapped is a connection of the near end; connections without a stream are ignored.
type tapped struct {
	net.Conn
	tap    *wiretap
	stream bool
}

func (c *tapped) note(direction int, p []byte) {
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	if direction == 0 && frame.BeginsStream(p) {
		c.stream = true
		c.tap.tape, c.tap.conn = nil, c.Conn
	}
	if !c.stream {
		return
	}
	if c.tap.octets[direction] += len(p); direction == 0 {
		c.tap.tape = append(c.tap.tape, p...)
	}
}

func (c *tapped) Write(p []byte) (int, error) {
	c.note(0, p) // before anything answers it
	return c.Conn.Write(p)
}

func (c *tapped) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.note(1, p[:n])
	return n, err
}

func (w *wiretap) seen() [2]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.octets
}

// lastLane is the lane of the last message that begins in what was written, cut anywhere at its
// end.
func (w *wiretap) lastLane(t *testing.T) (lane uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var numbers frame.Numbering
	for b := w.tape; ; {
		f, n, err := frame.Parse(b, 0, 0)
		require.NoError(t, err)
		switch f := f.(type) {
		case nil:
			return lane
		case frame.Data:
			require.NoError(t, numbers.Resolve(&f, 0))
			lane = f.Lane
		case frame.Sync:
			numbers.Sync(f)
		}
		b = b[n:]
	}
}

// secretly is a call with a secret where clients have them; the server's reply contains it, too.
func secretly(secret string) string {
	body := "<e:Envelope xmlns:e='http://schemas.xmlsoap.org/soap/envelope/'><e:Body><login><password>" + secret +
		"</password></login></e:Body></e:Envelope>"
	return fmt.Sprintf("POST /service HTTP/1.1\r\nHost: h\r\nContent-Type: text/xml\r\nAuthorization: Bearer %s\r\n"+
		"Cookie: id=%[1]s\r\nContent-Length: %d\r\n\r\n%s", secret, len(body), body)
}

// wordSpread is by how many bytes words of one length may differ that were never said: each letter
// has its own length. One that was said is 10 bytes shorter.
const wordSpread = 2

// words makes words of one length, each as compressible as any other.
func words() func() string {
	rnd := rand.New(rand.NewPCG(1, 1))
	return func() string {
		b := make([]byte, 24)
		for i := range b {
			b[i] = byte('a' + rnd.IntN(26))
		}
		return string(b)
	}
}

// What a client sends costs the same whether or not another client before it, on the same lane or
// on another one, sent the same: an observer of the lengths of frames cannot confirm a guess. In
// both directions. That holds for clients that are known by their addresses, too.
func TestClientsTellNothingOfOthers(t *testing.T) {
	t.Run("by connection", func(t *testing.T) { tellsNothing(t, false) })
	t.Run("by address", func(t *testing.T) { tellsNothing(t, true) })
}

func tellsNothing(t *testing.T, perAddress bool) {
	o := startOrigin(t, "127.0.0.1:0", server(func(h *http1.Head, entity []byte) []byte {
		if isOffer(h) {
			return nil
		}
		return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nSet-Cookie: id=%x\r\n"+
			"Content-Length: %d\r\n\r\n%s", bytes.ToUpper(entity[len(entity)-80:]), len(entity), entity)
	}))
	far := startProxy(t, "127.0.0.1:0", o.url(), nil)
	tap := &wiretap{}
	near := startProxy(t, "127.0.0.1:0", far.url(), func(c *settings) {
		c.WrapDialed = func(conn net.Conn) net.Conn { return &tapped{Conn: conn, tap: tap} }
		if perAddress {
			c.Clients = principal.ByAddress
		}
		c.MaxConns, c.MaxPerPeer = 2, 2 // no lane is kept for one who may come again
		c.Clock = withoutEnds{clock.Real()}
	})
	address := netip.MustParseAddr("127.0.0.1")
	connect := func(t *testing.T, to *url.URL) *client { // another client each time
		if perAddress {
			address = address.Next()
		}
		return connectFrom(t, address, to)
	}
	word := words()
	call := func(c *client, secret string) (cost [2]int) {
		before := tap.seen()
		c.say(secretly(secret))
		require.Contains(t, c.hear("</e:Envelope>"), secret)
		after := tap.seen()
		return [2]int{after[0] - before[0], after[1] - before[1]}
	}
	leave := func(c *client, live int) {
		require.NoError(t, c.Close())
		require.Eventually(t, func() bool {
			return near.LanesInUse() == live && near.Callers() == live && near.Connections() == live
		}, patience, time.Millisecond)
	}
	for range 3 { // shapes are known, and lanes in use
		c := connect(t, near.url())
		for range 3 {
			call(c, word())
		}
		leave(c, 0)
	}
	neighbour := connect(t, near.url())
	for range 3 {
		call(neighbour, word())
	}
	for name, before := range map[string]func(secret string){
		"departed": func(secret string) {
			c := connect(t, near.url())
			call(c, secret)
			call(c, secret)
			leave(c, 1)
		},
		"live": func(secret string) { call(neighbour, secret) },
		"on a stream before": func(secret string) {
			c := connect(t, near.url())
			call(c, secret)
			call(c, secret)
			gone := near.Live()
			require.NoError(t, tap.conn.Close())
			require.NoError(t, c.Close())
			require.NoError(t, neighbour.Close())
			require.Eventually(t, func() bool {
				live := near.Live()
				return live != nil && live != gone && near.Connections() == 0
			}, patience, time.Millisecond)
			neighbour = connect(t, near.url()) // over another stream
			for range 3 {
				call(neighbour, word())
			}
			c = connect(t, near.url())
			call(c, word())
			leave(c, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var right, wrong [2][]int
			for i := range 12 {
				secret := word()
				before(secret)
				victim := tap.lastLane(t) // neighbors have another
				guess := secret
				if i%2 == 1 {
					guess = word()
				}
				c := connect(t, near.url())
				cost := call(c, guess)
				if name == "departed" {
					require.Equal(t, victim, tap.lastLane(t), "the lane is used again: else the test shows nothing")
				}
				leave(c, 1)
				for d := range cost {
					if i%2 == 0 {
						right[d] = append(right[d], cost[d])
					} else {
						wrong[d] = append(wrong[d], cost[d])
					}
				}
			}
			for d, direction := range []string{"requests", "replies"} {
				all := slices.Concat(right[d], wrong[d])
				assert.LessOrEqual(t, slices.Max(all)-slices.Min(all), wordSpread,
					"%s: right guesses and wrong ones: %v %v", direction, right[d], wrong[d])
			}
		})
	}
}
