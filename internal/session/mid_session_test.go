package session_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/workload"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// commonStream are a service and an initiator with a stream and a common store.
type commonStream struct {
	*services
	t      *testing.T
	shared *troubled
	cfg    session.Config
	log    *warnings
}

func newCommonStream(t *testing.T, names []string, change func(*responder.Config)) *commonStream {
	p := &commonStream{t: t, shared: &troubled{Store: memory.New(memory.Config{})}, log: &warnings{}}
	common := &unchanging.CommonStore{URL: "http://127.0.0.1:2/", Store: p.shared}
	p.services = startServices(t, func(cfg *responder.Config) {
		cfg.Common = common
		if change != nil {
			change(cfg)
		}
	})
	own := *common
	for _, text := range names {
		name, err := negotiate.ParseHeaderName(text)
		require.NoError(t, err)
		own.Headers = append(own.Headers, name)
	}
	p.cfg = config(t)
	p.cfg.Store, p.cfg.Common = newStore(t), &own
	p.cfg.Log = slog.New(slog.NewTextHandler(p.log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return p
}

func (p *commonStream) dial() *session.Session {
	s := dial(p.t, p.http.URL+"/echo", p.cfg)
	require.True(p.t, s.Agreed().HHFR, s.Agreed().Why)
	return s
}

// call sends a message, and checks that service and caller see it as it is.
func (p *commonStream) call(s *session.Session, message []byte) {
	p.t.Helper()
	_, body := call(p.t, s, "", string(message))
	require.Equal(p.t, string(message), body)
	got := p.got()
	require.Equal(p.t, string(message), got[len(got)-1].body)
}

// settled sends messages until blocks are taken out of them.
func (p *commonStream) settled(s *session.Session, message []byte) {
	p.t.Helper()
	require.Eventually(p.t, func() bool {
		before := s.HeadersTaken()
		p.call(s, message)
		return s.HeadersTaken() > before
	}, 10*time.Second, time.Millisecond)
}

// carried returns the bytes of the messages of a session's stream, in either direction.
func carried(s *session.Session) (sent, received int64) {
	stats := s.Stream().Stats()
	return stats.Sent.Data.Octets, stats.Received.Data.Octets
}

// Blocks that begin to recur while a stream runs go to the store, and then neither requests nor
// replies have them; services and callers see them.
func TestBlocksTakenOutInMidSession(t *testing.T) {
	p := newCommonStream(t, workload.FixedHeaderNames(), nil)
	s := p.dial()
	messages, size := firstOf(100, workload.FixedHeaders(1))
	p.call(s, messages[0])
	assert.Zero(t, s.HeadersTaken())
	p.settled(s, messages[1])
	wasSent, wasReceived := carried(s)
	for _, m := range messages {
		p.call(s, m)
	}
	sent, received := carried(s)
	t.Logf("%d bytes of messages: %d sent, %d received", size, sent-wasSent, received-wasReceived)
	assert.Less(t, sent-wasSent, int64(size/2))
	assert.Less(t, received-wasReceived, int64(size/2))
	assert.NotEmpty(t, uris(t, p.shared.Store, ctxstore.FragmentPrefix))
	assert.Empty(t, p.log.text())
}

// A block that only replies have is left out of replies.
func TestBlocksOfRepliesTakenOut(t *testing.T) {
	block := `<t:Tenant xmlns:t="urn:example:tenant">` + strings.Repeat("of the service ", 100) + `</t:Tenant>`
	reply := withHeader(block, "<ok/>")
	p := newCommonStream(t, []string{"{urn:example:tenant}Tenant"}, func(cfg *responder.Config) {
		cfg.Serve = func(ctx context.Context, _ string, x *streamer.Exchange) {
			_ = x.Reply(ctx, streamer.NewMessage(nil, []byte(reply)))
		}
	})
	s := p.dial()
	var last int64
	require.Eventually(t, func() bool {
		_, before := carried(s)
		_, body := call(t, s, "", envelope("x"))
		require.Equal(t, reply, body)
		_, after := carried(s)
		last = after - before
		return last < 500
	}, 10*time.Second, time.Millisecond)
	for range 10 {
		_, body := call(t, s, "", envelope("x"))
		require.Equal(t, reply, body)
	}
	assert.Zero(t, s.HeadersTaken(), "requests had none")
}

// A store that is gone in mid-run: what was agreed on goes on, what is new travels whole, and the
// log says so once. A later stream of the session agrees anew.
func TestStoreGoneUnderAStream(t *testing.T) {
	p := newCommonStream(t, workload.FixedHeaderNames(), nil)
	p.cfg.Reconnect = time.Minute
	s := p.dial()
	messages, _ := firstOf(20, workload.FixedHeaders(1))
	p.call(s, messages[0])
	p.settled(s, messages[1])
	require.Eventually(t, func() bool { return len(uris(t, p.shared.Store, ctxstore.AgreedPrefix)) == 3 },
		10*time.Second, time.Millisecond)
	gone := func(context.Context, bool) error { return &ctxstore.Error{Code: ctxstore.Unavailable} }
	p.shared.trouble.Store(&gone)
	taken := s.HeadersTaken()
	for _, m := range messages {
		p.call(s, m)
	}
	assert.Greater(t, s.HeadersTaken(), taken)
	others, _ := firstOf(10, workload.FixedHeaders(2))
	for range 3 {
		for _, m := range others {
			p.call(s, m)
		}
	}
	assert.LessOrEqual(t, strings.Count(p.log.text(), "level=WARN"), 1, p.log.text())
	p.shared.trouble.Store(nil)
	s.Stream().Abort(streamer.CloseGoingAway, "the link broke")
	p.call(s, messages[0])
	p.settled(s, messages[1])
}

// A responder that cannot read the fragments, or does not want them, gets messages whole.
func TestFragmentsNotTaken(t *testing.T) {
	for name, change := range map[string]func(*responder.Config){
		"another store": func(cfg *responder.Config) {
			cfg.Common = &unchanging.CommonStore{URL: cfg.Common.URL, Store: memory.New(memory.Config{})}
		},
		"a policy": func(cfg *responder.Config) {
			cfg.UnchangingHeaders = func(string, []string) error { return assert.AnError }
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newCommonStream(t, workload.FixedHeaderNames(), change)
			s := p.dial()
			messages, _ := firstOf(20, workload.FixedHeaders(1))
			require.Eventually(t, func() bool {
				for _, m := range messages {
					p.call(s, m)
				}
				return strings.Contains(p.log.text(), "level=WARN")
			}, 10*time.Second, time.Millisecond)
			assert.Zero(t, s.HeadersTaken())
			assert.Equal(t, 1, strings.Count(p.log.text(), "level=WARN"), p.log.text())
			assert.NotContains(t, p.log.text(), assert.AnError.Error(), "the peer's reasons are its own")
		})
	}
}

// Many callers at once, with many blocks: each gets its own message back.
func TestManyBlocksInMidSession(t *testing.T) {
	p := newCommonStream(t, []string{"{urn:example:tenant}Tenant"}, nil)
	s := p.dial()
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			for j := range 60 {
				block := `<t:Tenant xmlns:t="urn:example:tenant">` + strings.Repeat("x", 70+i*10+j%7) + `</t:Tenant>`
				message := withHeader(block, "<op/>")
				_, body := call(t, s, "", message)
				assert.Equal(t, message, body)
			}
		})
	}
	wait.Wait()
}

// A sequence of exactly-once messages refers as well, over streams that break.
func TestSequenceTakesBlocksOutInMidSession(t *testing.T) {
	p := newCommonStream(t, workload.FixedHeaderNames(), func(cfg *responder.Config) {
		cfg.Sequenced = responder.SequencedHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
			_, err := io.Copy(w, r.Body)
			assert.NoError(t, err)
		}), nil, nil)
	})
	p.cfg.Assurance, p.cfg.Reconnect = wsrm.AtLeastOnce, time.Minute
	s := p.dial()
	messages, _ := firstOf(40, workload.FixedHeaders(1))
	for i := 0; s.HeadersTaken() == 0 || i < len(messages); i++ {
		m := messages[i%len(messages)]
		_, body := call(t, s, "", string(m))
		require.Equal(t, string(m), body)
		if i%10 == 9 {
			s.Stream().Abort(streamer.CloseGoingAway, "the link broke")
		}
	}
	assert.Positive(t, s.HeadersTaken())
}
