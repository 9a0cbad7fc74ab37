package infosets_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/codec/fastinfoset"
	"github.com/hhfr/hhfr/internal/infosets"
	"github.com/hhfr/hhfr/pkg/soap"
)

func document(t *testing.T, text string) string {
	t.Helper()
	doc, err := new(fastinfoset.InfosetWriter).FromXML(nil, []byte(text))
	require.NoError(t, err)
	return string(doc)
}

// envelope is one in the form that the codec has for it.
func envelope(v soap.Version, body string) string {
	space := "http://schemas.xmlsoap.org/soap/envelope/"
	if v == soap.V12 {
		space = "http://www.w3.org/2003/05/soap-envelope"
	}
	return `<s:Envelope xmlns:s="` + space + `"><s:Body>` + body + `</s:Body></s:Envelope>`
}

// service is a server that answers what is asked, and notes it.
type service struct {
	*httptest.Server
	asked  []string // form and action of each request
	answer func(w http.ResponseWriter, text string, infoset, accepts bool)
}

func newService(t *testing.T, answer func(w http.ResponseWriter, text string, infoset, accepts bool)) *service {
	s := &service{answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		media := soap.ParseContentType(r.Header.Get("Content-Type"))
		s.asked = append(s.asked, strings.TrimSpace(media.Type+" "+media.Action+r.Header.Get("SOAPAction")))
		assert.Equal(t, int64(len(body)), r.ContentLength)
		text := string(body)
		if infosets.Is(media) {
			xml, err := new(fastinfoset.Reader).ToXML(nil, body)
			assert.NoError(t, err)
			text = string(xml)
		}
		s.answer(w, text, infosets.Is(media), strings.Contains(r.Header.Get("Accept"), "fastinfoset"))
	}))
	t.Cleanup(s.Close)
	return s
}

// inForm answers an envelope in the form that is given.
func inForm(t *testing.T, w http.ResponseWriter, status int, text string, infoset bool) {
	v := soap.Recognize([]byte(text)).Version
	kind, err := soap.ContentType(v, "")
	assert.NoError(t, err)
	if infoset {
		kind, text = infosets.MediaType(v), document(t, text)
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

type reply struct {
	status           int
	kind, text, fail string
}

func post(t *testing.T, rt http.RoundTripper, url string, v soap.Version, text string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(text))
	require.NoError(t, err)
	fields, err := soap.RequestFields(v, "urn:a")
	require.NoError(t, err)
	for _, f := range fields {
		req.Header.Set(f.Name, f.Value)
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return reply{fail: err.Error()}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return reply{fail: err.Error()}
	}
	if resp.ContentLength >= 0 {
		assert.Len(t, body, int(resp.ContentLength))
	}
	return reply{resp.StatusCode, resp.Header.Get("Content-Type"), string(body), ""}
}

func newTransport(t *testing.T, optimistic bool) (rt *infosets.Transport, told *[]string) {
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	told = new([]string)
	tell := func(_ string, refused *http.Response, unread error) {
		switch {
		case unread != nil:
			*told = append(*told, "unread")
		case refused != nil:
			*told = append(*told, fmt.Sprint("refused ", refused.StatusCode))
		default:
			*told = append(*told, "takes")
		}
	}
	return &infosets.Transport{Base: base, Optimistic: optimistic, Tell: tell}, told
}

// TestNegotiation: XML first, and Fast Infoset from the first reply in it on; or Fast Infoset at
// once.
func TestNegotiation(t *testing.T) {
	for _, v := range []soap.Version{soap.V11, soap.V12} {
		for _, optimistic := range []bool{false, true} {
			s := newService(t, func(w http.ResponseWriter, text string, infoset, accepts bool) {
				assert.True(t, accepts)
				status := http.StatusOK
				if strings.Contains(text, "Fault") {
					status = http.StatusInternalServerError
				}
				inForm(t, w, status, text, accepts)
			})
			rt, told := newTransport(t, optimistic)
			xml, err := soap.ContentType(v, "")
			require.NoError(t, err)
			for _, body := range []string{"<a>é</a>", "", "<s:Fault><b/></s:Fault>"} {
				want := strings.ReplaceAll(envelope(v, body), "<s:Body></s:Body>", "<s:Body/>")
				status := http.StatusOK
				if strings.Contains(body, "Fault") {
					status = http.StatusInternalServerError
				}
				assert.Equal(t, reply{status, xml, want, ""}, post(t, rt, s.URL, v, envelope(v, body)))
			}
			plain, binary := soap.ParseContentType(xml).Type, infosets.MediaType(v)
			first := plain
			if optimistic {
				first = binary
			}
			action := map[soap.Version]string{soap.V11: ` "urn:a"`, soap.V12: " urn:a"}[v]
			assert.Equal(t, []string{first + action, binary + action, binary + action}, s.asked)
			assert.Equal(t, []string{"takes"}, *told)
		}
	}
}

// TestRefused: a server without Fast Infoset gets XML at once where it says so by its status, and
// else from the next request on; nothing is sent twice that may have been processed.
func TestRefused(t *testing.T) {
	text := envelope(soap.V11, "<a/>")
	for _, tc := range []struct {
		name         string
		answer       func(w http.ResponseWriter, text string, infoset bool)
		asked, told  []string
		first, later int
	}{
		{"415", func(w http.ResponseWriter, text string, infoset bool) {
			if infoset {
				w.WriteHeader(http.StatusUnsupportedMediaType)
				return
			}
			inForm(t, w, http.StatusOK, text, false)
		}, []string{"application/fastinfoset", "text/xml", "text/xml"}, []string{"refused 415"}, 200, 200},
		{"a fault in XML", func(w http.ResponseWriter, text string, infoset bool) {
			status := http.StatusOK
			if infoset {
				status = http.StatusInternalServerError
			}
			inForm(t, w, status, text, false)
		}, []string{"application/fastinfoset", "text/xml"}, []string{"refused 500"}, 500, 200},
		{"400", func(w http.ResponseWriter, text string, infoset bool) {
			if infoset {
				http.Error(w, "no XML", http.StatusBadRequest)
				return
			}
			inForm(t, w, http.StatusOK, text, false)
		}, []string{"application/fastinfoset", "text/xml"}, []string{"refused 400"}, 400, 200},
		{"a gateway, which knows nothing of it", func(w http.ResponseWriter, _ string, _ bool) {
			http.Error(w, "later", http.StatusBadGateway)
		}, []string{"application/fastinfoset", "application/fastinfoset"}, nil, 502, 502},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newService(t, func(w http.ResponseWriter, text string, infoset, _ bool) {
				tc.answer(w, text, infoset)
			})
			rt, told := newTransport(t, true)
			assert.Equal(t, tc.first, post(t, rt, s.URL, soap.V11, text).status)
			assert.Equal(t, tc.later, post(t, rt, s.URL, soap.V11, text).status)
			for i := range s.asked {
				s.asked[i] = strings.TrimSuffix(s.asked[i], ` "urn:a"`)
			}
			assert.Equal(t, tc.asked, s.asked)
			assert.Equal(t, tc.told, *told)
		})
	}
}

// TestOnlyFastInfoset: a server that takes nothing else, and says so in it, gets it at once.
func TestOnlyFastInfoset(t *testing.T) {
	s := newService(t, func(w http.ResponseWriter, text string, infoset, _ bool) {
		if !infoset {
			inForm(t, w, http.StatusUnsupportedMediaType, envelope(soap.V12, "<s:Fault/>"), true)
			return
		}
		inForm(t, w, http.StatusOK, text, true)
	})
	rt, told := newTransport(t, false)
	text := envelope(soap.V12, "<a/>")
	for range 2 {
		assert.Equal(t, reply{200, "application/soap+xml; charset=utf-8", text, ""}, post(t, rt, s.URL, soap.V12, text))
	}
	assert.Equal(t, []string{"application/soap+xml urn:a", "application/soap+fastinfoset urn:a",
		"application/soap+fastinfoset urn:a"}, s.asked)
	assert.Equal(t, []string{"takes"}, *told)
	s.asked = nil
	assert.Equal(t, 415, post(t, rt, s.URL, soap.V12, `<!DOCTYPE a><a/>`).status, "it has no other form")
	assert.Len(t, s.asked, 1)
}

// TestPassesAsItIs: what has no infoset, or is no envelope.
func TestPassesAsItIs(t *testing.T) {
	s := newService(t, func(w http.ResponseWriter, text string, _, _ bool) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, text)
	})
	rt, told := newTransport(t, true)
	declared := `<!DOCTYPE a><a/>`
	assert.Equal(t, declared, post(t, rt, s.URL, soap.V11, declared).text)
	latin := "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a>\xE9</a>"
	assert.Equal(t, latin, post(t, rt, s.URL, soap.V11, latin).text)
	for _, kind := range []string{
		"multipart/related; boundary=b; start-info=\"text/xml\"", "application/json", "text/xml; charset=utf-16",
	} {
		resp, err := (&http.Client{Transport: rt}).Post(s.URL, kind, strings.NewReader("<a/>"))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	resp, err := (&http.Client{Transport: rt}).Get(s.URL)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, []string{
		`text/xml "urn:a"`, `text/xml "urn:a"`, "multipart/related", "application/json", "text/xml", "",
	}, s.asked)
	assert.Empty(t, *told)
}

// TestWrongReplies: a reply that says it is Fast Infoset, and is not, is an error, with the place.
func TestWrongReplies(t *testing.T) {
	long := document(t, envelope(soap.V11, strings.Repeat("<n>123</n>", 300_000)))
	text := envelope(soap.V11, "<a/>")
	for _, tc := range []struct{ name, body, want string }{
		{"XML", text, "offset 0: no Fast Infoset"},
		{"cut", document(t, text)[:20], "offset 10: the Fast Infoset document ends too early"},
		{"cut far behind", long[:len(long)-3], "the Fast Infoset document ends too early"},
		{"a document type", document(t, text)[:5] + "\xC8\x00\x00a", "cannot be read"},
	} {
		s := newService(t, func(w http.ResponseWriter, _ string, _, _ bool) {
			w.Header().Set("Content-Type", "application/fastinfoset")
			_, _ = io.WriteString(w, tc.body)
		})
		rt, told := newTransport(t, false)
		got := post(t, rt, s.URL, soap.V11, text)
		assert.Contains(t, got.fail, tc.want, tc.name)
		if tc.name != "cut far behind" {
			assert.Equal(t, []string{"unread"}, *told, tc.name)
		}
	}
	s := newService(t, func(w http.ResponseWriter, _ string, _, _ bool) { // as CXF answers what is one-way
		w.Header().Set("Content-Type", "application/fastinfoset")
		w.WriteHeader(http.StatusAccepted)
	})
	rt, _ := newTransport(t, false)
	assert.Equal(t, reply{202, "application/fastinfoset", "", ""}, post(t, rt, s.URL, soap.V11, text))
	whole := newService(t, func(w http.ResponseWriter, _ string, _, _ bool) {
		w.Header().Set("Content-Type", "application/fastinfoset")
		_, _ = io.WriteString(w, long)
	})
	got := post(t, rt, whole.URL, soap.V11, text)
	assert.True(t, bytes.HasSuffix([]byte(got.text), []byte("</s:Envelope>")))
	assert.Len(t, got.text, len(envelope(soap.V11, strings.Repeat("<n>123</n>", 300_000))))
}
