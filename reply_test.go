package hhfr_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr"
)

// zeros is a body without an end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestReadAll: all of a body, of whatever length and in whatever pieces it comes, what came before
// an error, and no more than 64 MiB.
func TestReadAll(t *testing.T) {
	for _, n := range []int{0, 1, 511, 512, 513, 5000, 1 << 20} {
		body := bytes.Repeat([]byte("x"), n)
		for name, from := range map[string]io.Reader{
			"at once":      bytes.NewReader(body),
			"in halves":    iotest.HalfReader(bytes.NewReader(body)),
			"with its end": iotest.DataErrReader(bytes.NewReader(body)),
		} {
			r := hhfr.Reply{Body: io.NopCloser(from)}
			all, err := r.ReadAll()
			require.NoError(t, err, "%d %s", n, name)
			require.True(t, bytes.Equal(body, all), "%d %s", n, name)
		}
	}
	broken := errors.New("broken")
	r := hhfr.Reply{Body: io.NopCloser(io.MultiReader(strings.NewReader("some"), iotest.ErrReader(broken)))}
	some, err := r.ReadAll()
	assert.ErrorIs(t, err, broken)
	assert.Equal(t, "some", string(some))
	r = hhfr.Reply{Body: io.NopCloser(zeros{})}
	most, err := r.ReadAll()
	assert.ErrorIs(t, err, &hhfr.Error{Code: hhfr.TooLarge})
	assert.Len(t, most, 64<<20)
}

// TestHeadsOfRequests: each request has its own action, version of SOAP and fields, whatever those
// before had.
func TestHeadsOfRequests(t *testing.T) {
	said := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Content-Type")+"|"+r.Header.Get("SOAPAction")+"|"+r.Header.Get("X-Own"))
	})
	for _, by := range []way{stream, plain} {
		for name, common := range map[string]http.Header{"none": nil, "common fields": {"X-Own": {"common"}}} {
			t.Run(string(by)+", "+name, func(t *testing.T) {
				cfg := config(t)
				cfg.Header = common
				client, err := hhfr.Dial(t.Context(), serve(t, by, said), cfg)
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, client.Close()) })
				for range 2 {
					for _, c := range []struct {
						version, action, own, want string
					}{
						{"1.1", "", "", `text/xml; charset=utf-8|""|`},
						{"1.1", "urn:a", "", `text/xml; charset=utf-8|"urn:a"|`},
						{"1.1", "urn:a", "one", `text/xml; charset=utf-8|"urn:a"|one`},
						{"1.1", "urn:b", "", `text/xml; charset=utf-8|"urn:b"|`},
						{"1.2", "urn:b", "", `application/soap+xml; charset=utf-8; action="urn:b"||`},
						{"1.2", "", "", `application/soap+xml; charset=utf-8||`},
						{"1.1", "", "", `text/xml; charset=utf-8|""|`},
					} {
						req := &hhfr.Request{Action: c.action, Body: hhfr.Body(envelope(c.version, "<a>1</a>"))}
						if c.own != "" {
							req.Header = http.Header{"X-Own": {c.own}}
						} else {
							c.want += common.Get("X-Own")
						}
						reply, err := client.Call(t.Context(), req)
						require.NoError(t, err)
						all, err := reply.ReadAll()
						require.NoError(t, err)
						assert.Equal(t, c.want, string(all))
					}
				}
			})
		}
	}
}
