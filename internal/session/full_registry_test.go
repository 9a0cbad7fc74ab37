package session_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// fromNine dials from another address of this machine.
type fromNine struct{ tcp.Transport }

func (fromNine) Dial(ctx context.Context, addr string) (net.Conn, error) {
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 9)}}
	return from.DialContext(ctx, "tcp", addr)
}

// A peer that was met before, and finds all slots taken, is turned away and loses nothing by that.
// As soon as there is a slot it joins the same session with the same token, whether a hello alone
// was refused, or messages that left with it.
func TestTokensOutliveAFullRegistry(t *testing.T) {
	for name, change := range map[string]func(*session.Config){
		"message with the hello": func(*session.Config) {},
		"sequence":               func(c *session.Config) { c.Assurance = wsrm.AtLeastOnce },
	} {
		t.Run(name, func(t *testing.T) {
			const places = 8
			d := open(t, http.HandlerFunc(repeat), false,
				func(c *responder.Config) { c.MaxSessions, c.MaxPerPeer = 2*places, places })
			cfg := d.config(negotiate.Auto)
			change(&cfg)
			s := dial(t, d.url, cfg)
			say(t, s, "first")
			require.Eventually(t, func() bool { return s.Agreed().HHFR }, eventually, tick)
			require.NoError(t, s.Close())
			met := s.Agreed().Facts.Session

			// The slots of the address are taken by sessions whose streams are from another one, so
			// that only they use up the limit.
			holding := d.config(negotiate.Explicit)
			holding.Transports, holding.RememberFor = map[string]streamer.Transport{"tcp": fromNine{}}, -1
			var holders []*session.Session
			require.Eventually(t, func() bool { // the responder has to see the end of the first
				if s := dial(t, d.url, holding); s.Agreed().HHFR {
					holders = append(holders, s)
				}
				return len(holders) == places
			}, eventually, tick)

			cfg.Mode = negotiate.Met
			for range 2 {
				s, err := session.Dial(t.Context(), d.url, cfg)
				if cfg.Assurance == 0 {
					require.NoError(t, err)
					say(t, s, "in plain SOAP")
					assert.False(t, s.Agreed().HHFR)
				}
				if err == nil {
					require.Eventually(t, func() bool { return s.Stream() == nil || isOver(s.Stream()) }, eventually,
						tick)
					require.NoError(t, s.Close())
				}
				require.Contains(t, stored(t, cfg.Store), session.MetPrefix)
			}
			for _, h := range holders {
				require.NoError(t, h.Close())
			}
			require.Eventually(t, func() bool { return offerFrom(t, d.handler, "127.0.0.1:1").Code == http.StatusOK },
				eventually, tick)
			s = dial(t, d.url, cfg)
			say(t, s, "again")
			require.True(t, s.Agreed().HHFR, s.Agreed().Why)
			assert.Equal(t, met, s.Agreed().Facts.Session)
			require.NoError(t, s.Close())
		})
	}
}

func isOver(s *streamer.Stream) bool {
	select {
	case <-s.Done():
		return true
	default:
		return false
	}
}

// Of hellos that show one token at the same time one is admitted, and the slots that the others had
// meanwhile are freed.
func TestOneTokenAtTheSameTime(t *testing.T) {
	const sessions = 16
	s := startServices(t, func(c *responder.Config) { c.MaxSessions, c.MaxPerPeer = sessions, sessions })
	h := s.Handler(http.NotFoundHandler())
	for range 4 {
		answer := answerFrom(t, h, "127.0.0.1:1")
		var mu sync.Mutex
		var wait sync.WaitGroup
		var streams []*streamer.Stream
		for range 8 {
			wait.Go(func() {
				conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.stream.Addr().String())
				if !assert.NoError(t, err) {
					return
				}
				stream, err := streamer.Over(t.Context(), conn, streamer.Config{
					Initiator:      true,
					Session:        answer.Session,
					Token:          answer.Token[:],
					Representation: 1,
					Coder:          textCoder(),
				})
				if err == nil {
					mu.Lock()
					defer mu.Unlock()
					streams = append(streams, stream)
				}
			})
		}
		wait.Wait()
		require.Len(t, streams, 1)
		require.NoError(t, streams[0].Close())
	}
	joined := 0
	require.Eventually(t, func() bool { // the responder has to see the ends
		if w := offerFrom(t, h, "127.0.0.1:2"); w.Code == http.StatusOK {
			answer, err := negotiate.ParseAnswer(w.Body.Bytes())
			require.NoError(t, err)
			if s.joins(t, answer) == nil {
				joined++
			}
		}
		return joined == sessions
	}, eventually, tick, "all places are there")
}

// A peer without a valid token makes no session be dropped, also not in the name of a session that
// has ended and would need a slot.
func TestHellosWithoutTokenTakeNoRoom(t *testing.T) {
	const sessions = 4
	s := startServices(t, func(c *responder.Config) { c.MaxSessions, c.MaxPerPeer = sessions, sessions })
	h := s.Handler(http.NotFoundHandler())
	ended := dial(t, s.http.URL, config(t))
	require.NoError(t, ended.Close())
	wrong := &negotiate.Answer{Session: ended.Agreed().Facts.Session}
	var waiting []*negotiate.Answer
	require.Eventually(t, func() bool { // the responder has to see the end
		waiting = nil
		for range sessions {
			waiting = append(waiting, answerFrom(t, h, "192.0.2.1:1"))
		}
		return strings.Count(stored(t, s.store), "<n:TokenHash>") == sessions+1 // of the ended one, too
	}, eventually, tick)
	for i := range byte(2 * sessions) {
		wrong.Token[0] = i
		require.ErrorIs(t, s.joins(t, wrong), &streamer.Error{Code: streamer.UnknownSession})
	}
	for _, a := range waiting { // once the responder has seen the ends of the connections before
		require.Eventually(t, func() bool { return s.joins(t, a) == nil }, eventually, tick)
	}
}
