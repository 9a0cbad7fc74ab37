package hhfr_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr"
	"github.com/hhfr/hhfr/internal/responder"
)

// replies are services, by what they do. They return the errors that they get.
var replies = map[string]func(w http.ResponseWriter) []error{
	"nothing": func(http.ResponseWriter) []error { return nil },
	"fields after the status": func(w http.ResponseWriter) []error {
		w.Header().Set("X-Before", "1")
		w.Header()["X-Both"] = []string{"1"}
		w.Header().Set("Content-Type", "text/xml")
		w.WriteHeader(http.StatusAccepted)
		w.Header().Set("X-After", "1")
		w.Header()["X-Both"][0] = "changed"
		w.Header().Del("X-Before")
		return write(w, "<a/>")
	},
	"fields after the status, no type": func(w http.ResponseWriter) []error {
		w.Header().Set("X-Before", "1")
		w.WriteHeader(http.StatusOK)
		w.Header().Set("X-After", "1")
		w.Header().Set("Content-Type", "text/late")
		return write(w, "<html>", "</html>")
	},
	"fields after the body": func(w http.ResponseWriter) []error {
		err := write(w, "<html>")
		w.Header().Set("X-After", "1")
		w.Header().Set("Content-Type", "text/late")
		return err
	},
	"fields after a flush": func(w http.ResponseWriter) []error {
		err := write(w, "<a/>")
		err = append(err, http.NewResponseController(w).Flush())
		w.Header().Set("X-After", "1")
		return append(err, write(w, "<b/>")...)
	},
	"fields after much": func(w http.ResponseWriter) []error {
		err := write(w, strings.Repeat("x", 100_000))
		w.Header().Set("X-After", "1")
		return append(err, write(w, "y")...)
	},
	"little, then much": func(w http.ResponseWriter) []error {
		return write(w, "<", "html>"+strings.Repeat("x", 100_000))
	},
	"encoded, no type": func(w http.ResponseWriter) []error {
		w.Header().Set("Content-Encoding", "own")
		return write(w, "<html>")
	},
	"second status": func(w http.ResponseWriter) []error {
		w.WriteHeader(http.StatusForbidden)
		w.WriteHeader(http.StatusOK)
		return write(w, "no")
	},
	"204 with a body": func(w http.ResponseWriter) []error {
		w.WriteHeader(http.StatusNoContent)
		return write(w, "", "<a/>")
	},
	"304 with a body and its length": func(w http.ResponseWriter) []error {
		w.Header().Set("Content-Length", "4")
		w.Header().Set("Etag", `"x"`)
		w.WriteHeader(http.StatusNotModified)
		return write(w, "<a/>")
	},
	"204 by a copy": func(w http.ResponseWriter) []error {
		w.Header().Set("Content-Type", "text/xml")
		w.WriteHeader(http.StatusNoContent)
		_, err := io.Copy(w, strings.NewReader("<a/>"))
		return []error{err}
	},
	"204 flushed": func(w http.ResponseWriter) []error {
		w.WriteHeader(http.StatusNoContent)
		return []error{http.NewResponseController(w).Flush()}
	},
	"length":               func(w http.ResponseWriter) []error { return announce(w, "4", "<a", "/>") },
	"beyond the length":    func(w http.ResponseWriter) []error { return announce(w, "4", "<a/>", "<b/>", "c") },
	"over the length":      func(w http.ResponseWriter) []error { return announce(w, "4", "<a>", "</a>", "x") },
	"short of the length":  func(w http.ResponseWriter) []error { return announce(w, "9", "<a/>") },
	"no length":            func(w http.ResponseWriter) []error { return announce(w, "x", "<a/>") },
	"length below 0":       func(w http.ResponseWriter) []error { return announce(w, "-4", "<a/>") },
	"length, then another": func(w http.ResponseWriter) []error { return announce(w, "4", "<a/>", "") },
	"flushed, short of the length": func(w http.ResponseWriter) []error {
		w.Header().Set("Content-Length", "9")
		err := write(w, "<a/>")
		return append(err, http.NewResponseController(w).Flush())
	},
	"flushed, beyond the length": func(w http.ResponseWriter) []error {
		w.Header().Set("Content-Length", "4")
		err := append(write(w, "<a/>"), http.NewResponseController(w).Flush())
		return append(err, write(w, "<b/>")...)
	},
	"copied beyond the length": func(w http.ResponseWriter) []error {
		w.Header().Set("Content-Type", "text/xml")
		w.Header().Set("Content-Length", "4")
		_, err := io.Copy(struct{ io.Writer }{w}, iterate("<a/>", "<b/>"))
		return []error{err}
	},
	"status 99": func(w http.ResponseWriter) []error { w.WriteHeader(99); return nil },
}

// iterate reads parts one after the other.
func iterate(parts ...string) io.Reader {
	readers := make([]io.Reader, 0, len(parts))
	for _, part := range parts {
		readers = append(readers, strings.NewReader(part))
	}
	return io.MultiReader(readers...)
}

func write(w http.ResponseWriter, parts ...string) (errs []error) {
	for _, part := range parts {
		n, err := io.WriteString(w, part)
		if err == nil && n != len(part) {
			err = io.ErrShortWrite
		}
		errs = append(errs, err)
	}
	return errs
}

func announce(w http.ResponseWriter, length string, parts ...string) []error {
	w.Header().Set("Content-Length", length)
	return write(w, parts...)
}

// TestRepliesAreThoseOfNetHTTP: services of streams get the errors, and clients the replies, that
// they would get from net/http.
func TestRepliesAreThoseOfNetHTTP(t *testing.T) {
	for name, reply := range replies {
		t.Run(name, func(t *testing.T) {
			outcome := make(chan string, 1)
			by := "HTTP"
			service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if r.Header.Get("X-Warm") != "" {
					return
				}
				by = plain.seen()
				if responder.FactsOf(r.Context()) != nil {
					by = stream.seen()
				}
				var errs []error
				defer func() {
					p := recover()
					outcome <- fmt.Sprint(errs, p != nil)
					if p != nil {
						panic(http.ErrAbortHandler)
					}
				}()
				errs = reply(w)
			})
			server := httptest.NewServer(service)
			defer server.Close()
			want := seenBy(t, http.DefaultClient, server.URL, outcome)
			require.Equal(t, plain.seen(), by)

			url := serve(t, stream, service)
			assert.Equal(t, want, seenBy(t, &http.Client{Transport: newTransport(t)}, url, outcome), "upgraded")
			client := &http.Client{Transport: newTransport(t)}
			req := soapRequest(t, url)
			req.Header.Set("X-Warm", "1")
			resp, err := client.Do(req)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			assert.Equal(t, want, seenBy(t, client, url, outcome), "stream")
			assert.Equal(t, stream.seen(), by)
		})
	}
}

// Trailers do not travel, nor what announces them.
func TestTrailersDoNotTravel(t *testing.T) {
	c := dial(t, serve(t, stream, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/xml")
		w.Header().Set("Trailer", "X-Sum")
		_ = write(w, "<a/>")
		w.Header().Set("X-Sum", "1")
		w.Header().Set(http.TrailerPrefix+"X-More", "1")
	})), nil)
	defer c.Close()
	for range 3 {
		r, err := c.Call(t.Context(), &hhfr.Request{Body: hhfr.Body("<a/>")})
		require.NoError(t, err)
		assert.Equal(t, http.Header{"Content-Type": {"text/xml"}}, r.Header)
		assert.Equal(t, "<a/>", readAll(t, r))
	}
}

func soapRequest(t *testing.T, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("<a/>"))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "text/xml")
	return req
}

// seenBy is what a client sees of a reply, and its service of writing it.
func seenBy(t *testing.T, client *http.Client, url string, outcome <-chan string) string {
	t.Helper()
	resp, err := client.Do(soapRequest(t, url))
	service := <-outcome
	if err != nil {
		return "no whole reply, " + service
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	for _, name := range []string{"Date", "Content-Length", "Connection", "Hhfr"} {
		resp.Header.Del(name)
	}
	if err != nil {
		return "no whole reply, " + service
	}
	return fmt.Sprintf("%d %v %d %.80q, %s", resp.StatusCode, resp.Header, len(body), body, service)
}

// Replies to messages of a sequence follow the same rules.
func TestRepliesOfASequenceAreThoseOfNetHTTP(t *testing.T) {
	errs := make(chan []error, 1)
	c := dial(t, serve(t, stream, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/xml")
		w.Header().Set("Content-Length", "4")
		w.Header().Set("Trailer", "X-Sum")
		if string(body) == "<empty/>" {
			w.WriteHeader(http.StatusNoContent)
		}
		written := write(w, "<a/>")
		w.Header().Set("X-Sum", "1")
		errs <- append(written, write(w, "<b/>")...)
	})), &hhfr.Config{Guarantee: hhfr.AtLeastOnce})
	defer c.Close()
	for _, tc := range []struct {
		request, reply string
		status         int
		errs           []error
	}{
		{"<full/>", "<a/>", http.StatusOK, []error{nil, http.ErrContentLength}},
		{"<empty/>", "", http.StatusNoContent, []error{http.ErrBodyNotAllowed, http.ErrBodyNotAllowed}},
	} {
		r, err := c.Call(t.Context(), &hhfr.Request{Body: hhfr.Body(tc.request)})
		require.NoError(t, err)
		assert.Equal(t, tc.errs, <-errs)
		assert.Equal(t, tc.status, r.Status)
		assert.Equal(t, http.Header{"Content-Type": {"text/xml"}}, r.Header)
		assert.Equal(t, tc.reply, readAll(t, r))
	}
}
