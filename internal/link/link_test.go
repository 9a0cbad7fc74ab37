package link_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/streamer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var _ streamer.Transport = (*link.Link)(nil).Over(nil)

func relay(t testing.TB, c clock.Clock, profile string) *link.Link {
	t.Helper()
	p, err := link.ParseProfile(profile)
	require.NoError(t, err)
	l, err := link.Relay(c, p)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, l.Close()) })
	return l
}

// wire is the time on the line of that many bytes with headers.
func wire(p link.Profile, octets int64) time.Duration {
	return time.Duration(float64(octets) * 8 / float64(p.Bandwidth) * float64(time.Second))
}

// within compares durations to 1 %.
func within(t testing.TB, want, got time.Duration) {
	t.Helper()
	assert.InEpsilon(t, want.Seconds(), got.Seconds(), 0.01, "want %v, got %v", want, got)
}

func withHeaders(octets int) int64 { return int64(octets + 40*((octets+1459)/1460)) }

// A transfer takes the time of its bytes, and half a round trip; in both directions at once no
// longer.
func TestTransferTime(t *testing.T) {
	for _, name := range link.Names() {
		for _, octets := range []int{1, 1460, 1461, 30_000, 300_000} {
			t.Run(fmt.Sprintf("%s %d", name, octets), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := relay(t, nil, name)
					near, far, err := l.Pipe()
					require.NoError(t, err)
					want := wire(l.Profile(), withHeaders(octets)) + l.Profile().RTT/2
					sent := bytes.Repeat([]byte("0123456789abcdef."), octets/17+1)[:octets]
					var both sync.WaitGroup
					for _, ends := range [][2]net.Conn{{near, far}, {far, near}} {
						both.Go(func() {
							_, err := ends[0].Write(sent)
							assert.NoError(t, err)
							assert.NoError(t, ends[0].(interface{ CloseWrite() error }).CloseWrite())
						})
						both.Go(func() {
							from := time.Now()
							got, err := io.ReadAll(ends[1])
							assert.NoError(t, err)
							assert.True(t, bytes.Equal(sent, got))
							within(t, want, time.Since(from))
						})
					}
					both.Wait()
					s := l.Stats()
					direction := link.Direction{Octets: int64(octets), Wire: withHeaders(octets),
						Packets: int64(octets+1459) / 1460, Busy: s.Up.Busy}
					assert.Equal(t, link.Stats{Up: direction, Down: direction, Connections: 1, Elapsed: s.Elapsed}, s)
					within(t, want, s.Elapsed)
					within(t, wire(l.Profile(), withHeaders(octets)), s.Up.Busy)
				})
			})
		}
	}
}

// All connections share the line: two transfers take as long as one of both sizes, and each gets
// its share.
func TestConnectionsShareTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := relay(t, nil, "gprs")
		const octets = 50 * 1460
		var all sync.WaitGroup
		from := time.Now()
		var took [2]time.Duration
		for i := range took {
			near, far, err := l.Pipe()
			require.NoError(t, err)
			all.Go(func() {
				_, err := near.Write(make([]byte, octets))
				assert.NoError(t, err)
			})
			all.Go(func() {
				_, err := io.ReadFull(far, make([]byte, octets))
				assert.NoError(t, err)
				took[i] = time.Since(from)
			})
		}
		all.Wait()
		want := wire(l.Profile(), 2*withHeaders(octets)) + l.Profile().RTT/2
		within(t, want, max(took[0], took[1]))
		assert.Greater(t, min(took[0], took[1]), want*95/100, "they take turns")
	})
}

// A writer is ahead of the line by the queue, and no more.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := relay(t, nil, "gprs,queue=15000")
		near, far, err := l.Pipe()
		require.NoError(t, err)
		from := time.Now()
		_, err = near.Write(make([]byte, 10*1460))
		require.NoError(t, err)
		assert.Zero(t, time.Since(from), "the queue takes it")
		_, err = near.Write(make([]byte, 1460))
		require.NoError(t, err)
		within(t, wire(l.Profile(), 1500), time.Since(from))
		_, err = io.ReadFull(far, make([]byte, 11*1460))
		require.NoError(t, err)
		within(t, wire(l.Profile(), 11*1500)+l.Profile().RTT/2, time.Since(from))
	})
}

// A reader that pauses stops its writer, and no other.
func TestReaderThatRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := relay(t, nil, "3g")
		p := l.Profile()
		near, far, err := l.Pipe()
		require.NoError(t, err)
		written := 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				n, err := near.Write(make([]byte, 1000))
				written += n
				if err != nil {
					return
				}
			}
		}()
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.LessOrEqual(t, written, p.Queue+int(p.Bandwidth/8*int64(p.RTT/2)/int64(time.Second))+8<<10)
		assert.Greater(t, written, p.Queue)

		other, beyond, err := l.Pipe()
		require.NoError(t, err)
		from := time.Now()
		_, err = other.Write(make([]byte, 100))
		require.NoError(t, err)
		_, err = io.ReadFull(beyond, make([]byte, 100))
		require.NoError(t, err)
		within(t, wire(p, 140)+p.RTT/2, time.Since(from))

		require.NoError(t, far.Close())
		<-done
	})
}

// A faster clock makes the link faster by the same factor.
func TestScaledClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.Scaled(60)
		l := relay(t, c, "edge")
		near, far, err := l.Pipe()
		require.NoError(t, err)
		from := time.Now()
		go func() { _, _ = near.Write(make([]byte, 100_000)) }()
		_, err = io.ReadFull(far, make([]byte, 100_000))
		require.NoError(t, err)
		want := wire(l.Profile(), withHeaders(100_000)) + l.Profile().RTT/2
		within(t, want/60, time.Since(from))
		within(t, want, l.Stats().Elapsed)
	})
}

// HTTP over the link: a round trip to connect, then the requests' and replies' bytes and a round
// trip each.
func TestHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := relay(t, nil, "gprs")
		transport := new(inproc.Transport)
		listener, err := transport.Listen(t.Context(), "server")
		require.NoError(t, err)
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n, _ := io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, strings.Repeat("x", int(2*n)))
		})}
		go func() { _ = server.Serve(listener) }()
		defer server.Close()
		client := &http.Transport{DialContext: l.DialContext(func(ctx context.Context, _, _ string) (net.Conn, error) {
			return transport.Dial(ctx, "server")
		})}
		defer client.CloseIdleConnections()

		from := time.Now()
		const rounds = 5
		for range rounds {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://server/",
				strings.NewReader(strings.Repeat("y", 1000)))
			require.NoError(t, err)
			resp, err := client.RoundTrip(req)
			require.NoError(t, err)
			n, err := io.Copy(io.Discard, resp.Body)
			require.NoError(t, err)
			assert.Equal(t, int64(2000), n)
			_ = resp.Body.Close()
		}
		s := l.Stats()
		within(t, (1+rounds)*l.Profile().RTT+wire(l.Profile(), s.Up.Wire+s.Down.Wire), time.Since(from))
		within(t, l.Expected(1+rounds), time.Since(from))
		assert.Equal(t, 1, s.Connections)
		within(t, time.Since(from), s.Elapsed)
	})
}

func TestStreamerTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := relay(t, nil, "edge")
		transport := l.Over(new(inproc.Transport))
		from := time.Now()
		_, err := transport.Dial(t.Context(), "nobody")
		require.Error(t, err)
		assert.Equal(t, l.Profile().RTT, time.Since(from), "to learn that nobody is there takes a round trip as well")
		assert.Zero(t, l.Stats().Connections)

		listener, err := transport.Listen(t.Context(), "server")
		require.NoError(t, err)
		defer listener.Close()
		accepted := make(chan net.Conn)
		go func() {
			c, err := listener.Accept()
			assert.NoError(t, err)
			accepted <- c
		}()
		from = time.Now()
		near, err := transport.Dial(t.Context(), "server")
		require.NoError(t, err)
		assert.Equal(t, l.Profile().RTT, time.Since(from))
		server := <-accepted
		_, err = io.WriteString(near, "ping")
		require.NoError(t, err)
		got := make([]byte, 4)
		_, err = io.ReadFull(server, got)
		require.NoError(t, err)
		assert.Equal(t, "ping", string(got))

		// The server's end arrives after what it wrote.
		_, err = io.WriteString(server, "pong")
		require.NoError(t, err)
		require.NoError(t, server.Close())
		all, err := io.ReadAll(near)
		require.NoError(t, err)
		assert.Equal(t, "pong", string(all))
		require.NoError(t, near.Close())
	})
}

// A program that knows nothing of the link connects to its near end, and is at its far end a round
// trip later.
func TestForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := relay(t, nil, "edge")
		transport := new(inproc.Transport)
		entry, err := transport.Listen(t.Context(), "entry")
		require.NoError(t, err)
		server, err := transport.Listen(t.Context(), "server")
		require.NoError(t, err)
		over := make(chan error, 1)
		to := "server"
		go func() {
			over <- l.Forward(entry, func(ctx context.Context) (net.Conn, error) { return transport.Dial(ctx, to) })
		}()
		go func() {
			c, err := server.Accept()
			if assert.NoError(t, err) {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}
		}()
		from := time.Now()
		c, err := transport.Dial(t.Context(), "entry")
		require.NoError(t, err)
		_, err = io.WriteString(c, "ping")
		require.NoError(t, err)
		got := make([]byte, 4)
		_, err = io.ReadFull(c, got)
		require.NoError(t, err)
		assert.Equal(t, "ping", string(got))
		within(t, l.Expected(2), time.Since(from))
		require.NoError(t, c.Close())

		require.NoError(t, server.Close())
		to = "nobody"
		refused, err := transport.Dial(t.Context(), "entry")
		require.NoError(t, err)
		_, err = refused.Read(got)
		assert.Error(t, err)
		require.NoError(t, refused.Close())

		require.NoError(t, entry.Close())
		assert.Error(t, <-over)
	})
}

// Closing the link ends connections, whatever they wait for; later there are none.
func TestCloseLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := relay(t, nil, "14k4")
		transport := l.Over(new(inproc.Transport))
		listener, err := transport.Listen(t.Context(), "server")
		require.NoError(t, err)
		defer listener.Close()
		go func() {
			c, err := listener.Accept()
			if assert.NoError(t, err) {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}
		}()
		near, err := transport.Dial(t.Context(), "server")
		require.NoError(t, err)
		go func() { _, _ = near.Write(make([]byte, 1<<20)) }()
		read := make(chan error)
		go func() {
			_, err := io.Copy(io.Discard, near)
			read <- err
		}()
		time.Sleep(time.Minute)
		require.NoError(t, l.Close())
		require.ErrorIs(t, <-read, net.ErrClosed)
		_, _, err = l.Pipe()
		require.ErrorIs(t, err, &link.Error{Code: link.Closed})
	})
}

func TestConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := relay(t, nil, "edge")
		half := l.Profile().RTT / 2
		near, far, err := l.Pipe()
		require.NoError(t, err)
		assert.Equal(t, "link", near.LocalAddr().Network())
		assert.Equal(t, far.RemoteAddr(), near.LocalAddr())

		// Deadlines end waits, and can be moved.
		buffer := make([]byte, 10)
		require.NoError(t, near.SetReadDeadline(time.Now().Add(time.Second)))
		from := time.Now()
		_, err = near.Read(buffer)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		var timeout net.Error
		require.True(t, errors.As(err, &timeout) && timeout.Timeout())
		assert.Equal(t, time.Second, time.Since(from))
		require.NoError(t, near.SetDeadline(time.Unix(1, 0)))
		_, err = near.Read(buffer)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		_, err = near.Write(buffer)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, near.SetDeadline(time.Time{}))
		time.AfterFunc(time.Second, func() { _ = near.SetReadDeadline(time.Unix(1, 0)) })
		_, err = near.Read(buffer)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, near.SetDeadline(time.Time{}))
		n, err := near.Read(nil)
		require.NoError(t, err)
		assert.Zero(t, n)

		// One half may end before the other.
		_, err = io.WriteString(far, "end")
		require.NoError(t, err)
		require.NoError(t, far.(interface{ CloseWrite() error }).CloseWrite())
		_, err = far.Write(buffer)
		require.ErrorIs(t, err, net.ErrClosed)
		all, err := io.ReadAll(near)
		require.NoError(t, err)
		assert.Equal(t, "end", string(all))

		// A writer to a closed end learns that half a round trip later.
		require.NoError(t, far.Close())
		require.NoError(t, far.Close())
		_, err = near.Write(buffer)
		require.NoError(t, err)
		time.Sleep(half)
		_, err = near.Write(buffer)
		require.ErrorIs(t, err, io.ErrClosedPipe)
		require.NoError(t, near.Close())
		_, err = near.Read(buffer)
		require.ErrorIs(t, err, net.ErrClosed)
		require.ErrorIs(t, near.SetDeadline(time.Now()), net.ErrClosed)

		ctx, cancel := context.WithTimeout(t.Context(), half/2)
		defer cancel()
		_, err = l.Dial(ctx, func(context.Context) (net.Conn, error) { return nil, errors.New("not asked") })
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestSpeed(t *testing.T) {
	for name, want := range map[string]float64{"14k4": 20, "gprs": 15, "edge": 10, "3g": 3, "lte": 1.25, "wifi": 0.125,
		"lte,rtt=0s": 0.125, "gprs,rtt=20s": 20} {
		p, err := link.ParseProfile(name)
		require.NoError(t, err)
		assert.InDelta(t, want, p.Speed(), 1e-9, name)
	}
}

func TestFullPackets(t *testing.T) {
	p, err := link.ParseProfile("gprs")
	require.NoError(t, err)
	for octets, packets := range map[int64]time.Duration{0: 0, 1: 1, 1460: 1, 1461: 2} {
		assert.Equal(t, packets*300*time.Millisecond, p.FullPackets(octets), octets)
	}
}

func TestParseProfile(t *testing.T) {
	for _, c := range []struct {
		in   string
		want link.Profile
	}{
		{"14k4", link.Profile{Name: "14k4", Bandwidth: 14_400, RTT: time.Second, Queue: 6000}},
		{"gprs", link.Profile{Name: "gprs", Bandwidth: 40_000, RTT: 600 * time.Millisecond, Queue: 6000}},
		{"edge", link.Profile{Name: "edge", Bandwidth: 120_000, RTT: 400 * time.Millisecond, Queue: 6000}},
		{"3g", link.Profile{Name: "3g", Bandwidth: 1_000_000, RTT: 120 * time.Millisecond, Queue: 15_000}},
		{"lte", link.Profile{Name: "lte", Bandwidth: 20_000_000, RTT: 50 * time.Millisecond, Queue: 125_000}},
		{"geo", link.Profile{Name: "geo", Bandwidth: 1_000_000, RTT: 600 * time.Millisecond, Queue: 75_000}},
		{"wifi", link.Profile{Name: "wifi", Bandwidth: 50_000_000, RTT: 5 * time.Millisecond, Queue: 31_250}},
		{"edge,loss=2%,seed=7", link.Profile{Name: "edge", Bandwidth: 120_000, RTT: 400 * time.Millisecond, Queue: 6000,
			Loss: 0.02, Seed: 7}},
		{"edge,rate=64k,rtt=1s,queue=9000",
			link.Profile{Name: "edge", Bandwidth: 64_000, RTT: time.Second, Queue: 9000}},
		{"geo,rate=2M,loss=0.5", link.Profile{Name: "geo", Bandwidth: 2_000_000, RTT: 600 * time.Millisecond,
			Queue: 150_000, Loss: 0.5}},
		{"wifi,cpu=2s/1ms/3us", link.Profile{Name: "wifi", Bandwidth: 50_000_000, RTT: 5 * time.Millisecond,
			Queue: 31_250,
			CPU:   link.Computing{Plain: 2 * time.Second, Stream: time.Millisecond, Item: 3 * time.Microsecond}}},
		{"treo600,rtt=1s,cpu=0s/0s/0s",
			link.Profile{Name: "treo600", Bandwidth: 14_400, RTT: time.Second, Queue: 6000}},
		{"lte,rate=9600,rtt=0s", link.Profile{Name: "lte", Bandwidth: 9600, Queue: 6000}},
	} {
		got, err := link.ParseProfile(c.in)
		require.NoError(t, err, c.in)
		assert.Equal(t, c.want, got, c.in)
		_, err = link.Relay(nil, got)
		switch {
		case got.Loss > 0:
			require.ErrorIs(t, err, &link.Error{Code: link.Unsupported})
			require.ErrorContains(t, err, "loss is for datagrams")
		case got.CPU != link.Computing{}:
			require.ErrorIs(t, err, &link.Error{Code: link.Unsupported})
			require.ErrorContains(t, err, "only bench session adds it")
		default:
			require.NoError(t, err)
		}
	}
	for _, bad := range []string{
		"", "5g", "edge,", "edge,loss", "edge,loss=2", "edge,loss=-1%", "edge,loss=NaN", "edge,seed=-1", "edge,rtt=1",
		"edge,rtt=-1s", "edge,rtt=1h", "edge,rate=0", "edge,rate=1G",
		"edge,rate=k", "edge,rate=9999999M", "edge,rate=1kM", "edge,queue=-1", "edge,queue=x", "edge,seed=1,seed=2",
		"edge,other=1", "EDGE", "edge,cpu=1s", "edge,cpu=1s/1s", "edge,cpu=1s/1s/x", "edge,cpu=1s/1s/1s/1s",
		"edge,cpu=1s/-1s/1s", "edge,cpu=1s/1s/1h", "treo", "edge,cpu=",
	} {
		_, err := link.ParseProfile(bad)
		assert.ErrorIs(t, err, &link.Error{Code: link.BadProfile}, bad)
	}
	_, err := link.Relay(nil, link.Profile{})
	require.ErrorIs(t, err, &link.Error{Code: link.BadProfile})
}

func FuzzParseProfile(f *testing.F) {
	for _, s := range []string{"edge", "edge,loss=2%,seed=7", "gprs,rtt=1s,queue=12000,rate=64k", "treo600",
		"edge,cpu=1s/1ms/1us", "geo,burst=2,jitter=1ms,outage=1s/1m"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := link.ParseProfile(s)
		if err != nil {
			return
		}
		p.Loss, p.Impairment, p.CPU = 0, link.Impairment{}, link.Computing{}
		_, err = link.Relay(nil, p)
		require.NoError(t, err)
	})
}
