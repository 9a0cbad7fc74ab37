package peer_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/pkg/soap"
)

// With one worker as many requests wait as the queue has, the next is refused at once, while
// nothing is answered, and those that waited are answered, by either transport.
func TestWorkersRefuseBeyondTheirQueue(t *testing.T) {
	for name, hhfr := range map[string]bool{"http": false, "stream": true} {
		t.Run(name, func(t *testing.T) {
			wait := make(chan struct{})
			s := startWith(t, func(cfg *peer.Config) { cfg.Limits.Work.Workers = 1 },
				service("/busy", func(w http.ResponseWriter, _ *http.Request) {
					<-wait
					w.Header().Set("Content-Type", "text/xml")
					_, _ = w.Write([]byte("<done/>"))
				}))
			session := dial(t, s.URL("/busy"), config(t, hhfr))
			type replied struct {
				head, body string
				err        error
			}
			replies := make(chan replied)
			const taken = 1 + peer.QueuePerWorker
			for range taken + 1 {
				go func() {
					head, body, err := exchange(t.Context(), session, requestHead(t, "/busy", soap.V12),
						strings.NewReader(envelope(soap.V12, "busy", "")))
					replies <- replied{head, body, err}
				}()
			}
			refused := <-replies
			require.NoError(t, refused.err)
			assert.Contains(t, refused.head, " 503 ")
			assert.Contains(t, strings.ToLower(refused.head), "retry-after: 1\r\n")
			e, err := soap.Parse([]byte(refused.body), soap.Limits{})
			require.NoError(t, err)
			fault, ok := e.Fault()
			require.True(t, ok)
			assert.Equal(t, soap.V12, e.Version)
			assert.Contains(t, fault.Reason, "this one was not processed")
			status, _ := get(t, s.URL("/busy"))
			assert.Equal(t, http.StatusNotFound, status, "descriptions are no work")
			close(wait)
			for range taken {
				r := <-replies
				require.NoError(t, r.err)
				assert.Contains(t, r.head, " 200 ")
				assert.Equal(t, "<done/>", r.body)
			}
		})
	}
}

// A service is as slow as it is told to be, and its replies say so, if they are to.
func TestServiceTime(t *testing.T) {
	timing := regexp.MustCompile(`(?i)server-timing: app;dur=([0-9]+)\.[0-9]{3}\r\n`)
	const slow = 30 * time.Millisecond
	for name, hhfr := range map[string]bool{"http": false, "stream": true} {
		t.Run(name, func(t *testing.T) {
			headOf := func(work peer.Work) string {
				s := startWith(t, func(cfg *peer.Config) { cfg.Limits.Work = work }, peer.Sum())
				head, body, err := exchange(t.Context(), dial(t, s.URL("/sum"), config(t, hhfr)),
					requestHead(t, "/sum", soap.V11), strings.NewReader(envelope(soap.V11, "sum", "<item>1</item>")))
				require.NoError(t, err)
				assert.Contains(t, body, "<result>1</result>")
				return head
			}
			told := timing.FindStringSubmatch(headOf(peer.Work{Time: slow, Tells: true}))
			require.NotNil(t, told)
			ms, err := time.ParseDuration(told[1] + "ms")
			require.NoError(t, err)
			assert.GreaterOrEqual(t, ms, slow)
			assert.NotRegexp(t, timing, headOf(peer.Work{Time: time.Millisecond}))
		})
	}
}
