package demo_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/demo"
	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/pkg/ctxstore/directory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fast is a tour on a clock that is too fast to be exact: the times are for the soak test, on a
// quiet machine.
func fast(t *testing.T, messages []demo.TourMessage) demo.Config {
	return demo.Config{Messages: messages, Link: "3g", Speed: 60, Dir: t.TempDir()}
}

// TestTour is the main job, with nothing but this repository: SOAP in, binary stream over a thin
// link, SOAP out, byte for byte; and the same from the captures.
func TestTour(t *testing.T) {
	messages, err := demo.Builtin()
	require.NoError(t, err)
	cfg := fast(t, messages)
	rows, ways := 0, 0
	cfg.Each, cfg.EachWay = func(demo.Row) { rows++ }, func(demo.SessionRun) { ways++ }
	r, err := demo.Run(t.Context(), cfg)
	if err != nil {
		require.ErrorIs(t, err, demo.ErrNotTheLink)
	}
	assert.NotErrorIs(t, err, demo.ErrDifferent)
	assert.True(t, r.Same())
	assert.Equal(t, len(messages), rows)
	require.Len(t, r.Rows, len(messages))
	for _, row := range r.Rows {
		assert.Positive(t, row.Shapes, row.Name)
		assert.Less(t, row.Next, row.SOAP/2, row.Name)
		assert.Greater(t, row.Ratio(), 2.0, row.Name)
	}

	assert.Equal(t, len(messages), r.Sample)
	assert.Equal(t, len(demo.Ways), ways)
	by := map[string]demo.SessionRun{}
	bad := 0
	for _, w := range r.Ways {
		by[w.Name] = w
		assert.Equal(t, 2*len(messages), w.Messages)
		assert.GreaterOrEqual(t, w.Millis, w.Expected*0.98, w.Name)
		if w.Name != demo.SOAP {
			assert.Equal(t, 2*w.Messages, w.Found, w.Name)
			plain := map[string]int{demo.Stream: 1}[w.Name] // the first request, which asked for the stream
			assert.Equal(t, 2*w.Messages-plain, w.Rebuilt, w.Name)
		}
		if w.Good() {
			assert.InDelta(t, 0, w.Off(), demo.MaxOff, w.Name)
			continue
		}
		bad++
		assert.Equal(t, cfg.Speed/4, w.Speed, "%s: twice at half the speed before", w.Name)
	}
	assert.Equal(t, bad > 0, err != nil)
	require.Len(t, by, len(demo.Ways))
	assert.Equal(t, 1, by[demo.SOAP].Connections)
	assert.Equal(t, 1+20, by[demo.SOAP].RoundTrips)
	for _, name := range []string{demo.Stream, demo.Again, demo.Pair} {
		assert.Equal(t, 1, by[name].Connections, name)
		assert.Less(t, by[name].Sent+by[name].Received, (by[demo.SOAP].Sent+by[demo.SOAP].Received)/2, name)
	}
	assert.Equal(t, 1+20, by[demo.Stream].RoundTrips)
	assert.Equal(t, 1+20, by[demo.Again].RoundTrips)
	assert.Equal(t, 2+20, by[demo.Pair].RoundTrips)
	assert.Less(t, by[demo.Again].Sent, by[demo.Stream].Sent-800, "no shapes")

	rebuildFromFiles(t, cfg.Dir, messages)
}

// rebuildFromFiles follows the last lines of the demo's output, for the stream of the peers that
// had met: its shapes are in the store alone.
func rebuildFromFiles(t *testing.T, dir string, messages []demo.TourMessage) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, demo.Again, "*.bin"))
	require.NoError(t, err)
	require.Len(t, files, 2)
	runs := func() (all []capture.Input) {
		for _, f := range files {
			octets, err := os.ReadFile(f)
			require.NoError(t, err)
			all = append(all, capture.Input{Name: f, Octets: bytes.NewReader(octets)})
		}
		return all
	}
	without, err := capture.DecodeStreams(t.Context(), runs(), capture.DecodeConfig{})
	require.NoError(t, err)
	assert.Equal(t, 4*len(messages), without.Counts().Undecodable)

	store, err := directory.Open(filepath.Join(dir, demo.StoreDir), directory.Config{})
	require.NoError(t, err)
	defer store.Close()
	with, err := capture.DecodeStreams(t.Context(), runs(), capture.DecodeConfig{Store: store})
	require.NoError(t, err)
	assert.Equal(t, 4*len(messages), with.Counts().Verified)
	for _, m := range messages {
		messages = append(messages, demo.Changed(m))
	}
	for _, m := range with.Messages {
		assert.True(
			t,
			slices.ContainsFunc(messages, func(sent demo.TourMessage) bool { return bytes.Equal(sent.Body, m.Body) }),
		)
	}
}

func TestTourOfAnythingElse(t *testing.T) {
	list := []demo.TourMessage{
		{Name: "empty"},
		{Name: "text", Body: []byte("no XML")},
		{Name: "broken", Body: []byte("<a><b></a>")},
		{Name: "long", Body: []byte(strings.Repeat("long ", 2000))},
	}
	r, err := demo.Run(t.Context(), fast(t, list))
	if err != nil {
		require.ErrorIs(t, err, demo.ErrNotTheLink)
	}
	assert.True(t, r.Same())
	assert.Equal(t, 2, r.Sample)
	assert.Len(t, r.Ways, len(demo.Ways))

	r, err = demo.Run(t.Context(), fast(t, list[:1]))
	require.NoError(t, err)
	assert.Empty(t, r.Ways, "nothing for the link")
}

// tampering is an echo that changes its replies to messages that contain a word.
func tampering(word string) peer.Service {
	return peer.Service{Path: peer.EchoPath, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		w.Header()["Content-Type"] = r.Header["Content-Type"]
		_, _ = w.Write(bytes.Replace(body, []byte(word), []byte("tampered"), 1))
	})}
}

func TestTamperedReplies(t *testing.T) {
	messages, err := demo.Builtin()
	require.NoError(t, err)
	cfg := fast(t, messages[:2])
	word := "InternetGatewayDevice"
	require.Contains(t, string(messages[1].Body), word)
	cfg.SetService(tampering(word))
	r, err := demo.Run(t.Context(), cfg)
	require.ErrorIs(t, err, demo.ErrDifferent)
	assert.False(t, r.Same())
	assert.False(t, r.Rows[1].Same)
	for _, w := range r.Ways {
		assert.False(t, w.Same, w.Name)
		assert.Less(t, w.Found, 2*w.Messages, w.Name)
	}
}

func TestTourRefuses(t *testing.T) {
	messages, err := demo.Builtin()
	require.NoError(t, err)
	for profile, why := range map[string]link.Code{"pigeon": link.BadProfile, "edge,loss=1%": link.Unsupported} {
		cfg := fast(t, messages)
		cfg.Link = profile
		r, err := demo.Run(t.Context(), cfg)
		require.ErrorIs(t, err, &link.Error{Code: why})
		assert.Nil(t, r)
	}
}

func TestTourInterrupted(t *testing.T) {
	messages, err := demo.Builtin()
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cfg := fast(t, messages[:1])
	cfg.EachWay = func(demo.SessionRun) { cancel() }
	r, err := demo.Run(ctx, cfg)
	require.ErrorIs(t, err, context.Canceled)
	assert.Len(t, r.Rows, 1)
	assert.Len(t, r.Ways, 1)
}

func TestGood(t *testing.T) {
	for _, c := range []struct {
		ms, cpu float64
		good    bool
	}{{1000, 0.01, true}, {1099, 0.05, true}, {1101, 0.01, false}, {901, -1, true}, {899, 0.01, false}, {1000, 0.051,
		false}} {
		assert.Equal(t, c.good, demo.SessionRun{Millis: c.ms, Expected: 1000, CPU: c.cpu}.Good(), "%+v", c)
	}
}

func TestBreakEven(t *testing.T) {
	at := func(times ...time.Duration) []time.Duration { return times }
	soap := at(10, 20, 30, 40)
	for _, c := range []struct {
		way  []time.Duration
		want int
	}{{at(9, 19, 29, 39), 1}, {at(20, 21, 29, 30), 3}, {at(9, 21, 29, 30), 3}, {at(9, 19, 29, 40), 0},
		{at(11, 21, 31, 39), 4}} {
		assert.Equal(t, c.want, demo.BreakEven(soap, c.way), "%v", c.way)
	}
}

func TestSample(t *testing.T) {
	var list []demo.TourMessage
	for i := range 101 {
		list = append(list, demo.TourMessage{Name: fmt.Sprint(i), Body: []byte("x")})
	}
	list[0].Body, list[50].Body = nil, make([]byte, 9<<10)
	var names []string
	for _, m := range demo.Sample(list) {
		names = append(names, m.Name)
	}
	assert.Equal(t, []string{"1", "10", "20", "30", "40", "51", "61", "71", "81", "91"}, names)
	assert.Len(t, demo.Sample(list[:5]), 4)
}

// The second of a kind is as long and as well-formed as the first, in the same vocabulary, and says
// something else.
func TestChanged(t *testing.T) {
	messages, err := demo.Builtin()
	require.NoError(t, err)
	for _, m := range messages {
		next := demo.Changed(m)
		assert.Equal(t, next, demo.Changed(m), m.Name)
		assert.Len(t, next.Body, len(m.Body), m.Name)
		tags := regexp.MustCompile(`</?[A-Za-z:-]+|xmlns[:a-z0-9-]*="[^"]*"`)
		assert.Equal(t, tags.FindAllString(string(m.Body), -1), tags.FindAllString(string(next.Body), -1), m.Name)
		decoder := xml.NewDecoder(bytes.NewReader(next.Body))
		for err == nil {
			_, err = decoder.Token()
		}
		require.ErrorIs(t, err, io.EOF, m.Name)
		err = nil
	}
	for text, same := range map[string]bool{
		"<a>2026-11-22T10:20:30.125Z</a>": false, "<a>17</a>": false, "<a>-0.25</a>": false,
		"<a>urn:uuid:7d2f6e1a-40c3-4f0b-9c55-1b8a3f6d2e90</a>":   false,
		`<a Id="AAMkADk0ZTEwYTQ3LWV4YW1wbGUtaXRlbS0wMDAwMDA0"/>`: false,
		`<a>true</a>`: true, `<a xmlns="http://www.w3.org/2003/05/soap-envelope"/>`: true, "<a>1</a>": true,
		`<a b="1">VideoAnalyticsConfigurationToken</a>`: true, "no XML": true, "": true,
	} {
		next := demo.Changed(demo.TourMessage{Body: []byte(text)}).Body
		assert.Equal(t, same, string(next) == text, "%s: %s", text, next)
	}
}

// A message is found only if it is exactly what was sent, in its order and number.
func TestFound(t *testing.T) {
	sample := []demo.TourMessage{{Body: []byte("<a/>")}, {Body: []byte("<b/>")}}
	sent := slices.Concat(sample, sample)
	told := func() (all []*capture.Decoded) {
		for i := range 4 {
			for _, reply := range []bool{false, true} {
				all = append(
					all,
					&capture.Decoded{
						Number: i + 1,
						HHFR:   true,
						Reply:  reply,
						Body:   sample[i%2].Body,
						State:  capture.Verified,
					},
				)
			}
		}
		return all
	}
	assert.Equal(t, 8, demo.Found(sent, told()))
	besides := append(told(), &capture.Decoded{Number: 5, HHFR: true, Head: []byte("=x\n"), State: capture.Verified})
	assert.Equal(t, 8, demo.Found(sent, besides))

	altered := told()
	altered[3].Body = []byte("<B/>")
	assert.Equal(t, 7, demo.Found(sent, altered))
	withdrawn := told()
	withdrawn[0].State = capture.Withdrawn
	assert.Equal(t, 7, demo.Found(sent, withdrawn))
	assert.Zero(t, demo.Found(sent, told()[:7]), "one is missing")
	assert.Zero(t, demo.Found(sent, append(told(), told()[0])), "one too many")
}
