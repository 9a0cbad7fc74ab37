package inspector_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/inspector"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/wsrm/header"
)

// entry is message n, and what is stored beside it.
func entry(n int, body []byte) (*capture.Decoded, inspector.LogEntry) {
	at := time.Date(2026, 1, 2, 3, 4, 5, n, time.UTC)
	m := &capture.Decoded{
		Body: body, BodyOctets: int64(len(body)), Head: fmt.Appendf(nil, "POST /%d HTTP/1.1\r\n\r\n", n),
		State: capture.Unchecked, Number: n, HHFR: true, Session: [16]byte{1, 2}, Lane: 1, Exchange: 2, Reply: true,
		Place: frame.Place{Number: 7}, Packet: 2 * n, Stream: 3, Direction: 1, Index: 4, Origin: 1, Wire: 7,
		Src: netip.MustParseAddrPort("10.0.0.7:2001"), Dst: netip.MustParseAddrPort("[2001:db8::1%eth0]:80"),
		First: at, Last: at.Add(1), Operation: soap.Name{Space: "s", Local: "op"}, Version: soap.V12, Why: "why",
		Reliable: &header.Blocks{Sequence: "urn:1", AckRequested: []string{"urn:2"}},
		Frames:   []capture.RawFrame{{Stream: 3, At: 9, Octets: []byte{1}, Time: at}},
	}
	return m, inspector.LogEntry{Call: "call", Took: time.Second, Control: "taken", Path: "/p"}
}

// What was stored comes back, in whatever order it is asked for, while more is stored.
func TestLog(t *testing.T) {
	log := inspector.NewLog()
	defer func() { require.NoError(t, log.Close()) }()
	random := rand.New(rand.NewPCG(1, 2))
	bodies := make([][]byte, 500)
	for i := range bodies {
		bodies[i] = bytes.Repeat(fmt.Appendf(nil, "<a>%d</a>", i), random.IntN(1000))
	}
	var readers sync.WaitGroup
	for n, body := range bodies {
		m, e := entry(n, body)
		require.NoError(t, log.Append(m, e))
		if n%100 == 99 {
			at := random.IntN(n)
			readers.Go(func() {
				got, err := log.At(at)
				assert.NoError(t, err)
				assert.Equal(t, bodies[at], got.Body[:len(got.Body):len(got.Body)])
			})
		}
	}
	readers.Wait()
	require.Equal(t, len(bodies), log.Len())
	for _, n := range random.Perm(len(bodies)) {
		m, want := entry(n, bodies[n])
		want.Decoded = *m
		got, err := log.At(n)
		require.NoError(t, err)
		if len(want.Body) == 0 {
			want.Body, got.Body = nil, nil
		}
		require.Equal(t, &want, got)
		var body bytes.Buffer
		require.NoError(t, log.WriteBody(n, &body))
		require.Equal(t, string(bodies[n]), body.String())
	}
	for _, n := range []int{-1, len(bodies)} {
		_, err := log.At(n)
		assert.ErrorContains(t, err, "there is no message")
		assert.Error(t, log.WriteBody(n, &bytes.Buffer{}))
	}
}

// A check changes the states of messages that were stored before.
func TestLogChecks(t *testing.T) {
	log := inspector.NewLog()
	defer func() { require.NoError(t, log.Close()) }()
	var all []*capture.Decoded
	for n := range 3 {
		m, e := entry(n, []byte("<a/>"))
		m.State = capture.Unverified
		require.NoError(t, log.Append(m, e))
		all = append(all, m)
	}
	all[0].State, all[1].State = capture.Verified, capture.Withdrawn
	other, _ := entry(9, nil)
	log.Check(&capture.Check{State: capture.Verified, Messages: append(all[:2:2], other)})
	for n, want := range []string{"verified", "withdrawn", "unverified"} {
		e, err := log.At(n)
		require.NoError(t, err)
		assert.Equal(t, want, e.State.String())
	}
}

func TestPairs(t *testing.T) {
	same := func(l, r int) inspector.Pair { return inspector.Pair{Left: l, Right: r, Same: true} }
	other := func(l, r int) inspector.Pair { return inspector.Pair{Left: l, Right: r} }
	for _, tc := range []struct {
		left, right string
		want        []inspector.Pair
	}{
		{"", "", nil},
		{"abc", "abc", []inspector.Pair{same(0, 0), same(1, 1), same(2, 2)}},
		{"abc", "axc", []inspector.Pair{same(0, 0), other(1, 1), same(2, 2)}},
		{"abc", "ac", []inspector.Pair{same(0, 0), other(1, -1), same(2, 1)}},
		{"", "a", []inspector.Pair{other(-1, 0)}},
		{"xaybz", "1a2b34", []inspector.Pair{
			other(0, 0), same(1, 1), other(2, 2), same(3, 3), other(4, 4), other(-1, 5),
		}},
	} {
		assert.Equal(t, tc.want, inspector.Pairs(lines(tc.left), lines(tc.right)), "%q %q", tc.left, tc.right)
	}
	long := make([]string, 3000)
	for i := range long {
		long[i] = fmt.Sprint(i)
	}
	other3000 := append(append([]string{"first"}, long...), "last")
	for _, p := range inspector.Pairs(other3000, append([]string{"new"}, other3000[1:]...)) {
		assert.Equal(t, p.Left > 0, p.Same)
	}
	assert.Len(t, inspector.Pairs(append([]string{"x"}, long...), append(long, "y")), 3001, "too long for a table")
}

func lines(s string) (all []string) {
	for _, r := range s {
		all = append(all, string(r))
	}
	return all
}

func TestSpan(t *testing.T) {
	for _, tc := range []struct {
		left, right  string
		from, lt, rt int
	}{
		{"<a>1</a>", "<a>22</a>", 3, 4, 5}, {"", "", 0, 0, 0}, {"aa", "aaa", 2, 2, 3},
		{"ä", "ö", 0, 2, 2}, {"xäy", "xöy", 1, 3, 3},
	} {
		from, lt, rt := inspector.Span(tc.left, tc.right)
		assert.Equal(t, []int{tc.from, tc.lt, tc.rt}, []int{from, lt, rt}, "%q %q", tc.left, tc.right)
	}
}

// Any two texts are paired: all lines, in their order, and those that are the same are.
func FuzzPairs(f *testing.F) {
	f.Add("a\nb\nc", "a\nx\nc")
	f.Add("", "\n")
	f.Fuzz(func(t *testing.T, a, b string) {
		left, right := lines(a), lines(b)
		l, r := 0, 0
		for _, p := range inspector.Pairs(left, right) {
			if p.Left >= 0 {
				require.Equal(t, l, p.Left)
				l++
			}
			if p.Right >= 0 {
				require.Equal(t, r, p.Right)
				r++
			}
			if p.Same {
				require.Equal(t, left[p.Left], right[p.Right])
			}
		}
		require.Equal(t, []int{len(left), len(right)}, []int{l, r})
		inspector.Span(a, b)
	})
}
