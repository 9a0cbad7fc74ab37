package replay_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/flow"
	"github.com/hhfr/hhfr/internal/pcapng"
	"github.com/hhfr/hhfr/internal/replay"
	"github.com/hhfr/hhfr/internal/shared"
)

// mock replies to requests as they are recorded, each once, in the order of those with the same
// body.
type mock struct {
	t  *testing.T
	mu sync.Mutex
	of map[string][]replay.RecordedExchange
}

func (m *mock) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if !assert.NoError(m.t, err) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	key := r.Method + " " + r.RequestURI + " " + string(body)
	if !assert.NotEmpty(m.t, m.of[key], "nobody sent this: %.200s", key) {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	x := m.of[key][0]
	m.of[key] = m.of[key][1:]
	w.Header().Set("Content-Type", "text/xml")
	w.WriteHeader(x.Status)
	_, _ = w.Write(x.Reply)
}

// TestCapturesOfOtherPrograms: requests of plain SOAP, captured by other programs, are sent as they
// were. A server that replies as recorded makes no difference; one changed byte makes one.
func TestCapturesOfOtherPrograms(t *testing.T) {
	captures := shared.Files(t, shared.Dir(t, "corpus", "pcap", "soap"), nil)
	sent := 0
	for _, path := range captures {
		t.Run(filepath.Base(path), func(t *testing.T) {
			rec, err := replay.Load(t.Context(), bytes.NewReader(shared.Read(t, path)), nil)
			if err != nil {
				require.ErrorIs(t, err, &replay.Error{Code: replay.Nothing})
				assert.NotEmpty(t, rec.Found, "what there is instead")
				return
			}
			for _, change := range []bool{false, true} {
				m := &mock{t: t, of: map[string][]replay.RecordedExchange{}}
				changed := 0
				for i, x := range rec.Exchanges {
					method, rest, _ := strings.Cut(string(x.Head), " ")
					target, _, _ := strings.Cut(rest, " ")
					if change && x.Answered && len(x.Reply) > 0 && changed == 0 {
						changed = rec.Exchanges[i].Number
						x.Reply = bytes.Clone(x.Reply)
						x.Reply[len(x.Reply)/2] ^= 1
					}
					key := method + " " + target + " " + string(x.Body)
					m.of[key] = append(m.of[key], x)
				}
				s := httptest.NewServer(m)
				differences := 0
				for r := range rec.Run(t.Context(), dial(t, s.URL, false, nil), replay.RunConfig{InFlight: 1}) {
					require.NoError(t, r.Err)
					sent++
					if r.Difference != nil {
						differences = r.Exchange.Number
						assert.Equal(t, "body", r.Difference.What)
						assert.Equal(t, len(r.Exchange.Reply)/2, r.Difference.Offset)
					}
				}
				assert.Equal(t, changed, differences, "the exchange that differs")
				s.Close()
			}
		})
	}
	assert.Positive(t, sent)
}

// TestRecordingCutAnywhere: what is left of a recording is sent, or an error says what is wrong; it
// is always reported that something is missing.
func TestRecordingCutAnywhere(t *testing.T) {
	recording, n := record(t, true)
	for at := 0; at < len(recording); at += 1 + len(recording)/300 {
		rec, err := replay.Load(t.Context(), bytes.NewReader(recording[:at]), nil)
		if rec == nil {
			var f *flow.Error
			require.ErrorAs(t, err, &f, "cut at %d", at)
			continue
		}
		if err != nil {
			require.ErrorIs(t, err, &replay.Error{Code: replay.Nothing})
		}
		assert.True(t, rec.Partial || len(rec.Exchanges) == n || len(rec.Exchanges) == 0,
			"cut at %d: %d of %d, and nothing seems to be missing", at, len(rec.Exchanges), n)
	}
	var empty bytes.Buffer
	r := pcapng.NewRecorder(&empty, nil)
	require.NoError(t, r.Close())
	rec, err := replay.Load(t.Context(), &empty, nil)
	assert.ErrorIs(t, err, &replay.Error{Code: replay.Nothing})
	assert.False(t, rec.Partial)
}
