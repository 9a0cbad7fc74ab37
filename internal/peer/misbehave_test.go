package peer_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
)

func TestParseMisbehavior(t *testing.T) {
	forms, does := peer.Misbehaviors()
	require.Len(t, does, len(forms))
	for _, good := range []string{"", "no-hhfr", "refuse", "fault", "garbage", "slow=1s", "slow=0s",
		"close-after=0", "close-after=3", "drift=1"} {
		_, err := peer.ParseMisbehavior(good)
		assert.NoError(t, err, good)
	}
	for _, bad := range []string{"x", "refuse=1", "slow", "slow=", "slow=x", "slow=-1s",
		"close-after", "close-after=-1", "close-after=x", "drift", "drift=0", "="} {
		_, err := peer.ParseMisbehavior(bad)
		assert.ErrorIs(t, err, &peer.Error{Code: peer.BadConfig}, bad)
	}
}

// counted counts what reaches the service, but for offers, and answers it.
func counted(calls *atomic.Int64) peer.Service {
	return service("/counted", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		if !strings.Contains(string(body), "Offer") {
			calls.Add(1)
		}
		_, _ = w.Write(body)
	})
}

func startMisbehaving(t testing.TB, how string, services ...peer.Service) *peer.Server {
	m, err := peer.ParseMisbehavior(how)
	require.NoError(t, err)
	list, err := peer.NewServices(services...)
	require.NoError(t, err)
	store := newStore(t)
	stream, err := tcp.Transport{}.Listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	s, err := peer.Start(
		peer.Config{
			HTTP:      listen(t),
			Streams:   map[string]net.Listener{"tcp": stream},
			Services:  list,
			Store:     store,
			Coders:    codersOf(store),
			Misbehave: m,
		},
	)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

// Whatever the server does instead of agreeing, each message arrives once, as plain SOAP.
func TestMisbehaviorEndsInPlainSOAP(t *testing.T) {
	const message = `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><x/></s:Body></s:Envelope>`
	for _, how := range []string{"no-hhfr", "refuse", "fault", "garbage", "close-after=0"} {
		t.Run(how, func(t *testing.T) {
			var calls atomic.Int64
			s := startMisbehaving(t, how, counted(&calls))
			cfg := config(t, true)
			cfg.RequireHHFR = false
			session := dial(t, s.URL("/counted"), cfg)
			assert.False(t, session.Agreed().HHFR)
			assert.NotEmpty(t, session.Agreed().Why)
			for range 3 {
				_, body, err := exchange(t.Context(), session, "", strings.NewReader(message))
				require.NoError(t, err)
				assert.Equal(t, message, body)
			}
			assert.Equal(t, int64(3), calls.Load())
		})
	}
}

// A stream that is broken off: what was answered stays answered, what was not is of unknown fate,
// what comes then goes as plain SOAP.
func TestCloseAfter(t *testing.T) {
	var calls atomic.Int64
	s := startMisbehaving(t, "close-after=2", counted(&calls))
	cfg := config(t, true)
	cfg.RequireHHFR = false
	session := dial(t, s.URL("/counted"), cfg)
	require.True(t, session.Agreed().HHFR)
	for range 2 {
		_, body, err := exchange(t.Context(), session, "", strings.NewReader("x"))
		require.NoError(t, err)
		assert.Equal(t, "x", body)
	}
	_, _, err := exchange(t.Context(), session, "", strings.NewReader("x"))
	require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.FateUnknown})
	assert.Equal(t, int64(2), calls.Load())
}

// A slow server waits on its clock before each answer, by either way.
func TestSlow(t *testing.T) {
	for _, hhfr := range []bool{false, true} {
		hours := &waits{Clock: clock.Real()}
		m, err := peer.ParseMisbehavior("slow=1h")
		require.NoError(t, err)
		list, err := peer.NewServices(peer.Echo())
		require.NoError(t, err)
		store := newStore(t)
		stream, err := tcp.Transport{}.Listen(t.Context(), "127.0.0.1:0")
		require.NoError(t, err)
		s, err := peer.Start(
			peer.Config{
				HTTP:      listen(t),
				Streams:   map[string]net.Listener{"tcp": stream},
				Services:  list,
				Store:     store,
				Coders:    codersOf(store),
				Misbehave: m,
				Clock:     hours,
			},
		)
		require.NoError(t, err)
		_, body, err := exchange(
			t.Context(),
			dial(t, s.URL(peer.EchoPath), config(t, hhfr)),
			"",
			strings.NewReader("x"),
		)
		require.NoError(t, err)
		assert.Equal(t, "x", body)
		want := int64(1)
		if hhfr {
			want = 2 // the answer to the offer, and the exchange
		}
		assert.Equal(t, want, hours.slept.Load())
		require.NoError(t, s.Close())
	}
}

// waits is a clock on which an hour is over at once.
type waits struct {
	clock.Clock
	slept atomic.Int64
}

func (w *waits) Sleep(ctx context.Context, d time.Duration) error {
	if d == time.Hour {
		w.slept.Add(1)
		return nil
	}
	return w.Clock.Sleep(ctx, d)
}

// A request whose body comes in pieces is told from an offer all the same, and reaches the service
// whole.
func TestGarbageLeavesOthersAlone(t *testing.T) {
	s := startMisbehaving(t, "garbage", peer.Echo())
	for _, message := range []string{"", "x", strings.Repeat("no offer ", 1000), "<s:Envelope " +
		"xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'>" +
		"<s:Body>" + strings.Repeat(" ", 5000) + "<x/></s:Body></s:Envelope>"} {
		_, body, err := exchange(
			t.Context(),
			dial(t, s.URL(peer.EchoPath), config(t, false)),
			"",
			io.MultiReader(strings.NewReader(message), strings.NewReader("end")),
		)
		require.NoError(t, err)
		assert.Equal(t, message+"end", body)
	}
}

// The ticker counts on the clock it is given.
func TestTickerOnItsClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ticker := peer.Ticker(nil, time.Minute)
		from := time.Now()
		for n := 1; n <= 3; n++ {
			body := serve(t, ticker, ticker.Example).Body.String()
			at := from.Add(time.Duration(n) * time.Minute)
			assert.True(t, at.Equal(time.Now()))
			stamp := at.UTC().Format("2006-01-02T15:04:05.000Z")
			assert.Contains(t, body, fmt.Sprintf("<number>%d</number><time>%s</time>", n, stamp))
			time.Sleep(time.Second)
		}
	})
}
