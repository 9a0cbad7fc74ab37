package tlsrecord_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/tlsrecord"
)

// event is what one end of a connection read or wrote at once: dir is 0 for the client's bytes.
type event struct {
	dir int
	b   []byte
}

// tapped is a client's end whose bytes are noted.
type tapped struct {
	net.Conn
	mu     sync.Mutex
	events []event
}

func (c *tapped) note(dir int, b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, event{dir, bytes.Clone(b)})
}

func (c *tapped) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.note(1, p[:n])
	}
	return n, err
}

func (c *tapped) Write(p []byte) (int, error) {
	c.note(0, p)
	return c.Conn.Write(p)
}

// pipe returns both ends of a connection over loopback.
func pipe(t testing.TB) (client, server net.Conn) {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	client, err = (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
	require.NoError(t, err)
	server, err = l.Accept()
	require.NoError(t, err)
	return client, server
}

// ends are the configurations of a client and a server that write their keys.
func ends(t testing.TB) (client, server *tls.Config, keys *bytes.Buffer) {
	t.Helper()
	ca := shared.NewAuthority(t)
	keys = new(bytes.Buffer)
	client = &tls.Config{RootCAs: ca.Pool(), ServerName: "127.0.0.1", KeyLogWriter: keys}
	server = &tls.Config{Certificates: []tls.Certificate{ca.Issue(time.Hour, "127.0.0.1")}}
	return client, server, keys
}

// converse has a client send texts, each of which the server answers with the same in upper case,
// and returns what went over the connection.
func converse(t testing.TB, client, server *tls.Config, texts ...string) []event {
	t.Helper()
	near, far := pipe(t)
	tap := &tapped{Conn: near}
	served := make(chan error, 1)
	go func() {
		s := tls.Server(far, server)
		defer func() { _ = s.Close() }()
		buf := make([]byte, 1<<16)
		for {
			n, err := s.Read(buf)
			if err != nil {
				served <- err
				return
			}
			if _, err := s.Write(bytes.ToUpper(buf[:n])); err != nil {
				served <- err
				return
			}
		}
	}()
	c := tls.Client(tap, client)
	for _, text := range texts {
		_, err := c.Write([]byte(text))
		require.NoError(t, err)
		answer := make([]byte, len(text))
		_, err = io.ReadFull(c, answer)
		require.NoError(t, err)
		require.Equal(t, strings.ToUpper(text), string(answer))
	}
	require.NoError(t, c.Close())
	assert.ErrorIs(t, <-served, io.EOF)
	return tap.events
}

// chunk is what a follower passes on at once.
type chunk struct {
	dir   int
	gap   int64
	text  string
	event int
}

// followed is what a follower made of events.
type followed struct {
	*tlsrecord.Follower[int]
	chunks []chunk
}

// follow has a follower read events; gaps are bytes that are missing before an event.
func follow(t testing.TB, keys *tlsrecord.KeyLog, events []event, gaps map[int]int64) *followed {
	t.Helper()
	f := &followed{}
	f.Follower = tlsrecord.NewFollower(keys, func(dir int, gap int64, b []byte, m int) error {
		f.chunks = append(f.chunks, chunk{dir, gap, string(b), m})
		return nil
	})
	for i, e := range events {
		require.NoError(t, f.Write(e.dir, gaps[i], e.b, i))
	}
	return f
}

// said is what a direction said, with a bar for each gap.
func (f *followed) said(dir int) string {
	var b strings.Builder
	for _, c := range f.chunks {
		if c.dir != dir {
			continue
		}
		if c.gap != 0 {
			b.WriteByte('|')
		}
		b.WriteString(c.text)
	}
	return b.String()
}

// logOf is a key log.
func logOf(text []byte) *tlsrecord.KeyLog {
	k := new(tlsrecord.KeyLog)
	k.Add(text)
	return k
}

// split cuts events into packets of at most so many bytes.
func split(events []event, most int) (packets []event) {
	for _, e := range events {
		for b := e.b; len(b) > 0; {
			n := min(most, len(b))
			packets = append(packets, event{e.dir, b[:n]})
			b = b[n:]
		}
	}
	return packets
}
