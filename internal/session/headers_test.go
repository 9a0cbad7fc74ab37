package session_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// wiretap is a connection that keeps what goes over it.
type wiretap struct {
	net.Conn
	mu     sync.Mutex
	octets bytes.Buffer
}

func (w *wiretap) Write(p []byte) (int, error) {
	w.mu.Lock()
	w.octets.Write(p)
	w.mu.Unlock()
	return w.Conn.Write(p)
}

func (w *wiretap) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	w.mu.Lock()
	w.octets.Write(p[:n])
	w.mu.Unlock()
	return n, err
}

func (w *wiretap) all() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.octets.String()
}

// tapped taps the streams of a dialer.
func tapped(cfg *session.Config) *wiretap {
	w := &wiretap{}
	cfg.WrapConn = func(c net.Conn) net.Conn {
		w.Conn = c
		return w
	}
	return w
}

// messagesWithHeaders are those that a session with twoHeaders is to carry, with the headers in
// every possible form.
func messagesWithHeaders() (list []string) {
	for n, blocks := range []string{
		addressing + mustHeader, mustHeader + addressing, addressing, "", addressing + addressing,
		strings.ToUpper(addressing), "\n " + mustHeader + "\n", mark + "1/>", mark + mark,
	} {
		list = append(list, withHeader(blocks, strings.Repeat("<v>", n)))
	}
	return append(list, "", "<", mark, strings.Repeat("long ", 100_000)+addressing)
}

// A session with unchanging headers gives services whole messages, and callers whole replies,
// whichever path they take. On the stream the blocks are not there.
func TestHeadersArePutBack(t *testing.T) {
	for name, coders := range map[string]coders.Func{"as text": textCoders, "binary": nil} {
		t.Run(name, func(t *testing.T) {
			s := startServices(t, func(c *responder.Config) { c.Coders = coders })
			cfg := config(t)
			cfg.Coders, cfg.Headers = coders, twoHeaders
			tap := tapped(&cfg)
			sess := dial(t, s.http.URL+"/p", cfg)
			require.Equal(t, twoHeaders, sess.Agreed().Facts.Headers)
			for range 2 {
				for _, m := range messagesWithHeaders() {
					_, got := call(t, sess, "", m)
					require.Equal(t, m, got)
					p, err := sess.Begin(t.Context(), &streamer.Message{Body: io.MultiReader(strings.NewReader(m))})
					require.NoError(t, err)
					reply, err := p.Reply(t.Context())
					require.NoError(t, err)
					back, err := reply.ReadAll(1 << 20)
					require.NoError(t, err)
					require.Equal(t, m, string(back))
				}
			}
			for i, m := range s.got() {
				require.Equal(t, messagesWithHeaders()[i/2%len(messagesWithHeaders())], m.body)
			}
			sent := streamer.NewMessage(nil, []byte(withHeader(addressing, "sent")))
			require.NoError(t, sess.Send(t.Context(), sent))
			all := s.atLeast(4*len(messagesWithHeaders()) + 1)
			assert.Equal(t, withHeader(addressing, "sent"), all[len(all)-1].body)
			assert.EqualValues(t, 4*7+1, sess.HeadersTaken())
			require.NoError(t, sess.Close())
			if name == "as text" {
				assert.False(t, strings.Contains(tap.all(), "<t:Tenant "), "it stands nowhere but in the context")
			}
			assert.Contains(t, stored(t, s.store), "urn:example:tenant")
		})
	}
}

// In sequences messages are stored whole: whatever the next session agrees to, the service gets
// what was sent.
func TestHeadersInSequences(t *testing.T) {
	m := newBank(t, &teller{})
	cfg := assured(t, wsrm.ExactlyOnce, newLasting(t))
	cfg.Headers, cfg.Reconnect = twoHeaders, 0
	tap := tapped(&cfg)
	sess := dial(t, m.url("/book"), cfg)
	first := withHeader(addressing+mustHeader, "1")
	_, reply := call(t, sess, "", first)
	assert.Equal(t, "/book "+first, reply)
	assert.False(t, strings.Contains(tap.all(), "<t:Tenant "))
	m.kill()
	kept := withHeader(mustHeader, "2")
	// It may find out that the peer is gone.
	_ = sess.Send(t.Context(), streamer.NewMessage(nil, []byte(kept)))
	accepted := sess.Sequence().Accepted
	_ = sess.Close()
	m.refuse = true
	m.start()
	cfg.Reconnect = forEver
	sess = dial(t, m.url("/book"), cfg)
	assert.Empty(t, sess.Agreed().Facts.Headers)
	last := withHeader(addressing, "3")
	_, reply = call(t, sess, "", last)
	assert.Equal(t, "/book "+last, reply)
	require.NoError(t, sess.Finish(t.Context()))
	want := first + " "
	if accepted == 2 {
		want += kept + " "
	}
	got, _ := effect(t, m.store)
	assert.Contains(t, []string{want + last + " ", last + " " + want}, got)
	contexts := strings.Count(stored(t, m.store), "<n:UnchangingHeader>&lt;t:Tenant")
	assert.Equal(t, 1, contexts, "of the first session alone")
}

// A session that continues over another stream, whose responder refuses the headers, or as plain
// SOAP, sends them with each message.
func TestHeadersOverReconnections(t *testing.T) {
	m := newMortal(t)
	cfg := config(t)
	cfg.Headers, cfg.Reconnect, cfg.Clock = twoHeaders, forEver, quick{newLater()}
	sess := dial(t, m.url("/p"), cfg)
	message := withHeader(addressing+mustHeader, "x")
	round := func(way string, taken int64) {
		t.Helper()
		_, got := call(t, sess, "", message)
		assert.Equal(t, message, got)
		seen := m.got()
		assert.Equal(t, way+" "+message, seen[len(seen)-1])
		assert.Equal(t, taken, sess.HeadersTaken())
	}
	restart := func(refuse, plain bool) {
		before := sess.Stream()
		m.kill()
		<-before.Done() // else the next message may go into it
		m.refuse, m.plain = refuse, plain
		m.start()
	}
	round("stream", 2)
	restart(true, false)
	round("stream", 2)
	assert.Equal(t, []negotiate.Declined{{Item: "UnchangingHeader", Why: "not here"}}, sess.Agreed().Refused)
	restart(false, false)
	round("stream", 4)
	restart(false, true)
	round("http", 4)
	assert.Contains(t, sess.Agreed().Why, "the reply is no answer")
}

// An unchanged program gets its headers as it sent them, mustUnderstand included, also behind a
// Handler.
func TestHeadersForUnchangedPrograms(t *testing.T) {
	url := speaking(t, &unchanged{})
	client, rt := swapped(t, func(c *session.Config) { c.Headers, c.RequireHHFR = twoHeaders, true })
	for range 2 {
		_, got := post(t, client, url+"/echo", "text/xml", strings.NewReader(withHeader(mustHeader+addressing, "x")))
		assert.Equal(t, withHeader(mustHeader+addressing, "x"), got)
	}
	sess, ok := rt.Session(url)
	require.True(t, ok)
	assert.EqualValues(t, 4, sess.HeadersTaken())
}

// A reference that an initiator must not send makes its own message fail, with the reason.
func TestHeadersThatWereNotAgreedOn(t *testing.T) {
	got := make(chan error, 1)
	s := startServices(t, func(c *responder.Config) {
		c.Serve = func(ctx context.Context, _ string, x *streamer.Exchange) {
			_, err := x.Message().ReadAll(1 << 20)
			got <- err
			_ = x.Reply(ctx, streamer.NewMessage(nil, nil))
		}
	})
	o := exampleOffer()
	o.Headers = twoHeaders
	a := offered(t, s, o)
	require.Equal(t, 2, a.HeadersKept)
	conn, err := new(loopback).Dial(t.Context(), s.stream.Addr().String())
	require.NoError(t, err)
	cfg := streamer.Config{
		Initiator:      true,
		Session:        a.Session,
		Token:          a.Token[:],
		Representation: 1,
		Coder:          textCoder(),
	}
	_, err = streamer.Over(t.Context(), conn, cfg)
	require.ErrorIs(t, err, &streamer.Error{Code: streamer.Unsupported}, "its hello knows nothing of them")
	conn, err = new(loopback).Dial(t.Context(), s.stream.Addr().String())
	require.NoError(t, err)
	cfg.Outgoing = func(to io.Writer) io.WriteCloser { return asIs{to} }
	cfg.Incoming = func(body io.ReadCloser) io.ReadCloser { return body }
	raw, err := streamer.Over(t.Context(), conn, cfg)
	require.NoError(t, err)
	defer raw.Abort(streamer.CloseGoingAway, "")
	_, err = raw.Lane(0).Call(t.Context(), streamer.NewMessage(nil, []byte("x"+mark+"0123456789abcdef/>")))
	require.NoError(t, err)
	err = <-got
	require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Malformed})
	assert.ErrorContains(t, err, "unchanging header 0123456789abcdef")
}

// asIs writes bytes unchanged.
type asIs struct{ io.Writer }

func (asIs) Close() error { return nil }
