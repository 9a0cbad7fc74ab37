//go:build soak

package main

import (
	"bytes"
	"flag"
	"iter"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/hhfr/hhfr/internal/session"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/pcapng"
	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/internal/sender"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
	"github.com/hhfr/hhfr/pkg/workload"
)

var soakFor = flag.Duration("soak", 5*time.Minute, "how long random sessions go on")

// TestSoakSessions: random messages over sessions with random limits and sync sizes come back byte
// for byte, and from their recordings. A failure names the seed of its messages and limits; the
// order of exchanges depends on the machine.
func TestSoakSessions(t *testing.T) {
	material := append(shared.Envelopes(t, true), workload.Mixed(20)...)
	seeds := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	sessions, messages, octets := 0, 0, 0
	stores := newStores() // reused for a while, so that later sessions begin with known shapes
	for end := time.Now().Add(*soakFor); time.Now().Before(end); sessions++ {
		seed := seeds.Uint64()
		rnd := rand.New(rand.NewPCG(seed, 0))
		if rnd.IntN(4) == 0 {
			stores = newStores()
		}
		s := soakSession{seed: seed, rnd: rnd, stores: stores, messages: soakMessages(rnd, material)}
		s.run(t)
		messages += len(s.messages)
		for _, m := range s.messages {
			octets += len(m)
		}
	}
	goleak.VerifyNone(t)
	t.Logf("%d sessions, %d messages, %d bytes", sessions, messages, octets)
	assert.Positive(t, sessions)
}

func newStores() [2]ctxstore.Store {
	return [2]ctxstore.Store{memory.New(memory.Config{}), memory.New(memory.Config{})}
}

// soakSession is one session whose peers have stores of their own.
type soakSession struct {
	seed     uint64
	rnd      *rand.Rand
	stores   [2]ctxstore.Store
	messages [][]byte
}

func (s *soakSession) run(t *testing.T) {
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", s.seed)
		}
	}()
	here, there := s.stream(), s.stream()
	server := s.serve(t, there)
	var file bytes.Buffer
	rec := pcapng.NewRecorder(&file, time.Now)
	transport := &http.Transport{DialContext: rec.DialContext((&net.Dialer{}).DialContext)}
	representations := []string{"binary", "xml"}
	if s.rnd.IntN(8) == 0 {
		slices.Reverse(representations)
	}
	sess, err := session.Dial(t.Context(), server.URL(peer.EchoPath), session.Config{
		HTTPClient: &http.Client{
			Transport: transport,
		}, Transports: map[string]streamer.Transport{"tcp": tcp.Transport{}}, Store: s.stores[0],
		Coders:          soakCoders(s.stores[0]),
		Representations: representations, RequireHHFR: true, Stream: here,
		WrapConn: func(c net.Conn) net.Conn { return rec.Conn(c) },
	})
	require.NoError(t, err)
	inFlight := 1 + s.rnd.IntN(min(32, there.Limits.MaxExchanges))
	n := 0
	for in := range sender.Send(t.Context(), sess, s.outgoing(), inFlight) {
		require.NoError(t, in.Err, "message %d of %d", n+1, len(s.messages))
		require.True(t, bytes.Equal(s.messages[n], in.Body), "message %d of %d", n+1, len(s.messages))
		n++
	}
	require.Equal(t, len(s.messages), n)
	require.NoError(t, sess.Close())
	transport.CloseIdleConnections()
	require.NoError(t, server.Close())
	require.NoError(t, rec.Close())
	s.decode(t, file.Bytes())
}

// stream draws limits and sizes of one side; none below what the peer may count on before it has
// read the hello (docs/wire-format.md, section 3).
func (s *soakSession) stream() streamer.Config {
	upTo := func(n int) int { return 1 + s.rnd.IntN(n) }
	return streamer.Config{
		SyncBytes: int64(
			1 << (6 + s.rnd.IntN(11)),
		), SyncMessages: upTo(1024), QueueBytes: int64(1 << (14 + s.rnd.IntN(8))),
		Limits: streamer.Limits{
			MaxFragment: 512 + s.rnd.IntN(
				16384-512,
			), MaxShapes: 15 + upTo(64), MaxShapeBytes: 1 << (16 + s.rnd.IntN(6)), MaxExchanges: upTo(64),
			MaxQueued: int64(1 << (26 + s.rnd.IntN(4))), MaxHeld: int64(1 << (15 + s.rnd.IntN(6))),
		},
	}
}

func (s *soakSession) serve(t *testing.T, stream streamer.Config) *peer.Server {
	services, err := peer.NewServices(peer.Echo())
	require.NoError(t, err)
	var lc net.ListenConfig
	plain, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	streams, err := tcp.Transport{}.Listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	server, err := peer.Start(
		peer.Config{
			HTTP:     plain,
			Streams:  map[string]net.Listener{"tcp": streams},
			Services: services,
			Store:    s.stores[1],
			Coders:   soakCoders(s.stores[1]),
			Stream:   stream,
		},
	)
	require.NoError(t, err)
	return server
}

func soakCoders(store ctxstore.Store) coders.Func {
	return coders.OfBook(binary.NewBook(ctxstore.Shapes{Store: store}))
}

func (s *soakSession) outgoing() iter.Seq2[sender.MessageToSend, error] {
	return func(yield func(sender.MessageToSend, error) bool) {
		for _, m := range s.messages {
			if !yield(sender.MessageToSend{Body: m}, nil) {
				return
			}
		}
	}
}

// decode decodes the messages from the recording and the server's store.
func (s *soakSession) decode(t *testing.T, file []byte) {
	r, err := capture.Decode(t.Context(), bytes.NewReader(file), capture.DecodeConfig{Store: s.stores[1]})
	require.NoError(t, err)
	require.False(t, r.Partial())
	found := 0
	for _, m := range r.Messages {
		if m.HHFR {
			require.Equal(t, capture.Verified, m.State, "%s: %s", m.FileName(), m.Why)
			require.True(t, bytes.Equal(s.messages[m.Number-1], m.Body), m.FileName())
			found++
		}
	}
	require.Equal(t, 2*len(s.messages), found)
}

// soakMessages draws the messages of a session: unchanged, cut off, with bytes or pieces changed,
// or of bytes that are no XML.
func soakMessages(rnd *rand.Rand, material [][]byte) (list [][]byte) {
	few := material
	if rnd.IntN(2) == 0 { // recurring kinds
		few = [][]byte{material[rnd.IntN(len(material))], material[rnd.IntN(len(material))],
			material[rnd.IntN(len(material))]}
	}
	for range 1 + rnd.IntN(200) {
		m := bytes.Clone(few[rnd.IntN(len(few))])
		switch rnd.IntN(8) {
		case 0:
			m = m[:rnd.IntN(len(m)+1)]
		case 1:
			for range 1 + rnd.IntN(4) {
				if len(m) > 0 {
					m[rnd.IntN(len(m))] = byte(rnd.IntN(256))
				}
			}
		case 2:
			other := few[rnd.IntN(len(few))]
			at, from := rnd.IntN(len(m)+1), rnd.IntN(len(other)+1)
			m = slices.Concat(m[:at], other[from:min(len(other), from+rnd.IntN(2000))], m[at:])
		case 3:
			if rnd.IntN(8) == 0 {
				m = make([]byte, rnd.IntN(1<<20))
				for i := range m {
					m[i] = byte(rnd.Uint32())
				}
			}
		}
		list = append(list, m)
	}
	return list
}
