package hhfr_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

func dial(t testing.TB, url string, cfg *hhfr.Config) *hhfr.Client {
	t.Helper()
	if cfg == nil {
		cfg = config(t)
	}
	c, err := hhfr.Dial(t.Context(), url, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func readAll(t testing.TB, r *hhfr.Reply) string {
	t.Helper()
	body, err := r.ReadAll()
	require.NoError(t, err)
	return string(body)
}

// What a request says reaches the service over plain SOAP and over a stream, and the service's
// answer comes back.
func TestCallByEitherWay(t *testing.T) {
	for _, by := range ways {
		t.Run(string(by), func(t *testing.T) {
			url := serve(t, by, echo)
			cfg := config(t)
			first := dial(t, url, cfg) // so that the two have met
			require.NoError(t, call(t, first))
			require.NoError(t, first.Close())
			cfg.Header = http.Header{"X-All": {"1"}}
			c := dial(t, strings.Replace(url, "//", "//user:pass@", 1)+"/a/b?q=1", cfg)
			for _, tc := range []struct {
				name, version   string
				req             hhfr.Request
				action, content string
			}{
				{"1.1", "1.1", hhfr.Request{Action: "urn:x:get"}, `"urn:x:get"`, "text/xml; charset=utf-8"},
				{"1.1 without action", "1.1", hhfr.Request{}, `""`, "text/xml; charset=utf-8"},
				{"1.2", "1.2", hhfr.Request{Action: "urn:x:get"}, "",
					`application/soap+xml; charset=utf-8; action="urn:x:get"`},
				{"own fields", "1.2", hhfr.Request{Header: http.Header{"Content-Type": {"text/xml"},
					"Soapaction": {"mine"}}}, "mine", "text/xml"},
			} {
				t.Run(tc.name, func(t *testing.T) {
					sent := envelope(tc.version, "<get/>")
					for kind, body := range map[string]io.Reader{
						"string": hhfr.Body(sent), "bytes": hhfr.Body([]byte(sent)), "strings": strings.NewReader(sent),
						"reader": io.MultiReader(strings.NewReader(sent[:20]), strings.NewReader(sent[20:])),
					} {
						req := tc.req
						req.Body = body
						r, err := c.Call(t.Context(), &req)
						require.NoError(t, err, kind)
						assert.Equal(t, http.StatusOK, r.Status)
						assert.Equal(t, by.seen(), r.Header.Get("X-Way"))
						assert.Equal(t, tc.action, r.Header.Get("X-Action"), kind)
						assert.Equal(t, tc.content, r.Header.Get("Content-Type"), kind)
						assert.Equal(t, "/a/b?q=1", r.Header.Get("X-Target"))
						assert.Equal(t, "Basic dXNlcjpwYXNz", r.Header.Get("X-User"))
						assert.Nil(t, r.Fault())
						assert.Equal(t, sent, readAll(t, r), kind)
					}
				})
			}
		})
	}
}

// A first program: text in, reply out. The body of the reply keeps the client open; its end closes
// the client.
func TestCallInOneLine(t *testing.T) {
	for _, by := range []way{plain, stream} {
		url := serve(t, by, echo)
		for range 2 {
			r, err := hhfr.Call(t.Context(), url, envelope("1.1", "<one/>"))
			require.NoError(t, err)
			assert.Equal(t, envelope("1.1", "<one/>"), readAll(t, r))
		}
		r, err := hhfr.Call(t.Context(), url, []byte(envelope("1.1", "<two/>")))
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		r, err = hhfr.Call(t.Context(), url, &hhfr.Request{Action: "urn:three"})
		require.NoError(t, err)
		assert.Equal(t, `"urn:three"`, r.Header.Get("X-Action"))
		assert.Empty(t, readAll(t, r))
	}
}

func TestFaults(t *testing.T) {
	long := strings.Repeat("long ", 40<<10)
	for _, by := range ways {
		for name, tc := range map[string]struct{ sent, reason string }{
			"1.1": {envelope("1.1",
				"<s:Fault><faultcode>s:Client</faultcode><faultstring>no such door</faultstring></s:Fault>"),
				"no such door"},
			"1.2": {envelope("1.2",
				"<s:Fault><s:Code><s:Value>s:Sender</s:Value></s:Code><s:Reason><s:Text xml:lang=\"en\">no "+
					"door</s:Text></s:Reason></s:Fault>"), "no door"},
			"long": {envelope("1.1",
				"<s:Fault><faultcode>s:Server</faultcode><faultstring>x</faultstring><detail>"+long+
					"</detail></s:Fault>"), "x"},
			"broken":    {envelope("1.1", "<s:Fault><faultcode>s:Client</faultstring></s:Fault>"), ""},
			"none":      {envelope("1.1", "<Fault/>"), "-"},
			"none long": {envelope("1.1", "<a>"+long+"</a>"), "-"},
			"no SOAP":   {"Fault", "-"},
		} {
			url := serve(t, by, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/xml")
				w.WriteHeader(http.StatusInternalServerError)
				_, _ = io.WriteString(w, tc.sent)
			}))
			r, err := dial(t, url, nil).Call(t.Context(), &hhfr.Request{Body: hhfr.Body("<a/>")})
			require.NoError(t, err)
			assert.Equal(t, http.StatusInternalServerError, r.Status)
			for range 2 {
				f := r.Fault()
				switch tc.reason {
				case "-":
					assert.Nil(t, f, name)
				case "":
					require.NotNil(t, f, name)
					assert.NotEmpty(t, f.Reason, name)
				default:
					require.NotNil(t, f, name)
					assert.Equal(t, tc.reason, f.Reason, name)
				}
			}
			assert.Equal(t, tc.sent, readAll(t, r), "%s: all of the body is there after Fault", name)
		}
	}
}

// failures are services that fail in one way each.
var failures = map[string]http.HandlerFunc{
	"panics": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	"breaks off": func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("<half"))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	},
	"does not answer": func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	},
}

// overdue is a context whose deadline passes when the test wants that.
type overdue struct {
	context.Context
	passed chan struct{}
}

func (o overdue) Done() <-chan struct{} { return o.passed }

func (o overdue) Err() error {
	select {
	case <-o.passed:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// The same failure has the same Code and the same Sent, over each path.
func TestOneEventOneError(t *testing.T) {
	type identity struct {
		Code hhfr.Code
		Sent bool
	}
	unsent, unknown := identity{hhfr.Unsent, false}, identity{hhfr.FateUnknown, true}
	arrived := make(chan struct{})
	working := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		failures["does not answer"](w, r)
	})
	for name, tc := range map[string]struct {
		services http.Handler
		call     func(t *testing.T, c *hhfr.Client) error
		want     identity
		is       error
	}{
		"service panics":   {failures["panics"], call, unknown, nil},
		"reply breaks off": {failures["breaks off"], call, unknown, nil},
		"deadline while the service works": {working, func(t *testing.T, c *hhfr.Client) error {
			ctx := overdue{t.Context(), make(chan struct{})}
			go func() {
				<-arrived
				close(ctx.passed)
			}()
			_, err := c.Call(ctx, &hhfr.Request{Body: hhfr.Body("<a/>")})
			return err
		}, unknown, context.DeadlineExceeded},
		"context is over before": {echo, func(_ *testing.T, c *hhfr.Client) error {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_, err := c.Call(ctx, &hhfr.Request{Body: hhfr.Body("<a/>")})
			return err
		}, unsent, context.Canceled},
		"closed": {echo, func(t *testing.T, c *hhfr.Client) error {
			require.NoError(t, c.Close())
			return call(t, c)
		}, unsent, net.ErrClosed},
		"action that cannot be": {echo, func(t *testing.T, c *hhfr.Client) error {
			_, err := c.Call(t.Context(), &hhfr.Request{Action: "a\nb", Body: hhfr.Body("<a/>")})
			return err
		}, identity{hhfr.Invalid, false}, nil},
		"field that cannot be": {echo, func(t *testing.T, c *hhfr.Client) error {
			_, err := c.Call(t.Context(), &hhfr.Request{Header: http.Header{"X": {"a\r\nY: b"}}})
			return err
		}, identity{hhfr.Invalid, false}, nil},
		"no request": {echo, func(t *testing.T, c *hhfr.Client) error {
			return c.Send(t.Context(), nil)
		}, identity{hhfr.Invalid, false}, nil},
		"body cannot be read": {echo, func(t *testing.T, c *hhfr.Client) error {
			_, err := c.Call(t.Context(), &hhfr.Request{Body: io.MultiReader(&torn{})})
			return err
		}, unsent, errTorn},
	} {
		t.Run(name, func(t *testing.T) {
			for _, by := range ways {
				c := dial(t, serve(t, by, tc.services), nil)
				err := tc.call(t, c)
				var e *hhfr.Error
				require.ErrorAs(t, err, &e, "%s", by)
				assert.Equal(t, tc.want, identity{e.Code, e.Sent}, "%s: %v", by, err)
				if tc.is != nil {
					require.ErrorIs(t, err, tc.is, "%s", by)
				}
				require.ErrorIs(t, err, &hhfr.Error{Code: tc.want.Code})
			}
		})
	}
}

func call(t *testing.T, c *hhfr.Client) error {
	t.Helper()
	r, err := c.Call(t.Context(), &hhfr.Request{Body: hhfr.Body("<a/>")})
	if err == nil {
		_, err = r.ReadAll()
	}
	return err
}

var errTorn = errors.New("torn")

type torn struct{}

func (*torn) Read([]byte) (int, error) { return 0, errTorn }

func TestNobodyIsThere(t *testing.T) {
	nobody := "http://" + shared.Addr(t)
	var e *hhfr.Error
	for _, mode := range []negotiate.Mode{"", "first-call", "explicit", "met"} {
		cfg := config(t)
		cfg.Mode = mode
		c, err := hhfr.Dial(t.Context(), nobody, cfg)
		if err == nil {
			_, err = c.Call(t.Context(), &hhfr.Request{Body: hhfr.Body("<a/>")})
			require.NoError(t, c.Close())
		}
		require.ErrorAs(t, err, &e, "%q", mode)
		assert.Equal(t, hhfr.Unreachable, e.Code)
		assert.False(t, e.Sent)
	}
	_, err := hhfr.Dial(t.Context(), "http://127.0.0.1:1", &hhfr.Config{Mode: "never"})
	require.ErrorIs(t, err, &hhfr.Error{Code: hhfr.Invalid})
	for _, url := range []string{"", "ftp://x", "http://", "http://user:secret@[", "://"} {
		_, err := hhfr.Dial(t.Context(), url, nil)
		require.ErrorIs(t, err, &hhfr.Error{Code: hhfr.Invalid}, url)
		assert.NotContains(t, err.Error(), "secret")
	}
	_, err = hhfr.Dial(t.Context(), "http://127.0.0.1:1", &hhfr.Config{Guarantee: 9})
	require.ErrorIs(t, err, &hhfr.Error{Code: hhfr.Invalid})
}

func TestSend(t *testing.T) {
	got := make(chan string, 2)
	for _, by := range ways {
		url := serve(t, by, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			got <- string(body)
			if string(body) == "<no/>" {
				w.WriteHeader(http.StatusForbidden)
			}
		}))
		c := dial(t, url, nil)
		require.NoError(t, c.Send(t.Context(), &hhfr.Request{Body: hhfr.Body("<a/>")}))
		assert.Equal(t, "<a/>", <-got)
		err := c.Send(t.Context(), &hhfr.Request{Body: hhfr.Body("<no/>")})
		assert.Equal(t, "<no/>", <-got)
		if by == plain {
			require.ErrorIs(t, err, &hhfr.Error{Code: hhfr.Refused})
		}
		require.NoError(t, c.Close())
	}
}

// Many messages are accepted in their order up to the first that is not, and no body is left open.
func TestSendAll(t *testing.T) {
	got := make(chan string, 100)
	for _, by := range ways {
		url := serve(t, by, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			got <- string(body)
		}))
		c := dial(t, url, nil)
		var all []*hhfr.Request
		want := map[string]bool{}
		for i := range 40 {
			text := strings.Repeat("<a/>", i+1)
			all = append(all, &hhfr.Request{Body: hhfr.Body(text)})
			want[text] = true
		}
		n, err := c.SendAll(t.Context(), all...)
		require.NoError(t, err)
		assert.Equal(t, 40, n)
		for range 40 {
			delete(want, <-got)
		}
		assert.Empty(t, want)
		n, err = c.SendAll(t.Context())
		require.NoError(t, err)
		assert.Zero(t, n)
		closed := &closing{Reader: strings.NewReader("<c/>")}
		n, err = c.SendAll(t.Context(), &hhfr.Request{Body: hhfr.Body("<b/>")}, nil, &hhfr.Request{Body: closed})
		require.ErrorIs(t, err, &hhfr.Error{Code: hhfr.Invalid})
		assert.Equal(t, 1, n)
		assert.Equal(t, "<b/>", <-got)
		assert.True(t, closed.is)
		require.NoError(t, c.Close())
	}
}

// closing is a body that knows when it is closed.
type closing struct {
	io.Reader
	is bool
}

func (c *closing) Close() error {
	c.is = true
	return nil
}

// A file as body survives a stream that breaks before anything of the body was sent: it is then
// sent whole.
func TestFileAsBody(t *testing.T) {
	name := filepath.Join(t.TempDir(), "message.xml")
	sent := envelope("1.2", strings.Repeat("<item>1</item>", 20<<10))
	require.NoError(t, os.WriteFile(name, []byte(sent), 0o600))
	for _, by := range ways {
		f, err := os.Open(name)
		require.NoError(t, err)
		r, err := dial(t, serve(t, by, echo), nil).Call(t.Context(), &hhfr.Request{Body: f})
		require.NoError(t, err)
		assert.Contains(t, r.Header.Get("Content-Type"), "application/soap+xml")
		got := readAll(t, r)
		assert.Equal(t, len(sent), len(got), "%s", by)
		assert.True(t, sent == got, "%s", by)
		_, err = f.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrClosed, "the body is closed")
	}
}

// A reply arrives while the request is being written.
func TestConversation(t *testing.T) {
	url := serve(t, stream, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lines := bufio.NewReader(r.Body)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			_, _ = w.Write(bytes.ToUpper(line))
			_ = http.NewResponseController(w).Flush()
		}
	}))
	c := dial(t, url, nil)
	require.NoError(t, call(t, c)) // there is a stream now
	body, w := io.Pipe()
	go func() { _, _ = io.WriteString(w, "<Envelope>one\n") }()
	r, err := c.Call(t.Context(), &hhfr.Request{Header: http.Header{"Content-Type": {"text/plain"}}, Body: body})
	require.NoError(t, err)
	lines := bufio.NewReader(r.Body)
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "<ENVELOPE>ONE\n", line)
	_, err = io.WriteString(w, "two\n")
	require.NoError(t, err)
	line, err = lines.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "TWO\n", line)
	require.NoError(t, w.Close())
	_, err = lines.ReadString('\n')
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, r.Body.Close())
}
