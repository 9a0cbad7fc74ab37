package peer_test

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/schema"
	"github.com/hhfr/hhfr/pkg/streamer"
)

var drifted = regexp.MustCompile(`<d:drift(\d+) xmlns:d="urn:hhfr:drift">(\d+)</d:drift`)

// When the structure of replies changes in mid-session, under load, and that of requests as well,
// each message arrives as it was sent, whatever described both: new shapes are agreed on the way.
func TestDriftUnderLoad(t *testing.T) {
	const every, callers, calls = 5, 8, 40
	described, err := schema.Parse([]byte(`<element name="concat"><complexType>` +
		`<element name="item" type="string"/></complexType></element>`))
	require.NoError(t, err)
	for _, mode := range []negotiate.Mode{negotiate.Explicit, negotiate.FirstCall} {
		t.Run(string(mode), func(t *testing.T) {
			s := startMisbehaving(t, fmt.Sprint("drift=", every), peer.Echo())
			store := newStore(t)
			cfg := session.Config{Mode: mode, Store: store,
				Coders: coders.OfBook(binary.NewBook(ctxstore.Shapes{Store: store}))}
			if mode == negotiate.Explicit {
				cfg.RequestSchema, cfg.ReplySchema = described, described
			}
			sess := dial(t, s.URL(peer.EchoPath), cfg)
			var mu sync.Mutex
			seen := map[string]string{} // structures, by the number of the reply
			var all sync.WaitGroup
			for c := range callers {
				all.Go(func() {
					for i := range calls {
						text := fmt.Sprintf("call %d of %d", i, c)
						// The requests drift, too.
						body := fmt.Sprintf(`<concat xmlns="urn:hhfr:demo"><item>%s</item>%s</concat>`, text,
							strings.Repeat("<item/>", i/every))
						m, err := sess.Call(t.Context(), streamer.NewMessage(nil, []byte(envelopeOf(body))))
						if !assert.NoError(t, err) {
							return
						}
						reply, err := m.ReadAll(1 << 20)
						if !assert.NoError(t, err) {
							return
						}
						assert.Contains(t, string(reply), text)
						if found := drifted.FindSubmatch(reply); found != nil {
							mu.Lock()
							seen[string(found[2])] = string(found[1])
							mu.Unlock()
						}
					}
				})
			}
			all.Wait()
			require.True(t, sess.Agreed().HHFR, sess.Agreed().Why)
			assert.Len(t, seen, callers*calls-every, "each reply once")
			for n := every + 1; n <= callers*calls; n++ {
				assert.Equal(t, fmt.Sprint((n-1)/every), seen[fmt.Sprint(n)])
			}
			require.NoError(t, sess.Close())
		})
	}
}

func envelopeOf(body string) string {
	return `<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"><soap:Body>` +
		body + `</soap:Body></soap:Envelope>`
}
