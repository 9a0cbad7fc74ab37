package export

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/facts"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/http1"
)

// archive writes an HTTP archive of version 1.2 (w3c.github.io/web-performance/specs/HAR), an entry
// for each exchange, in the order of their ends.
type archive struct {
	w       io.Writer
	entries int
}

// The types below are those of the format; what it does not have begins with _.

type harEntry struct {
	Started string      `json:"startedDateTime"`
	Time    float64     `json:"time"` // milliseconds
	Request harRequest  `json:"request"`
	Reply   harReply    `json:"response"`
	Cache   struct{}    `json:"cache"`
	Timings harTimings  `json:"timings"`
	Server  string      `json:"serverIPAddress,omitempty"`
	Hhfr    *harSession `json:"_hhfr,omitempty"`
}

type harRequest struct {
	Method  string     `json:"method"`
	URL     string     `json:"url"`
	Version string     `json:"httpVersion"`
	Cookies []harField `json:"cookies"`
	Header  []harField `json:"headers"`
	Query   []harField `json:"queryString"`
	Post    *postData  `json:"postData,omitempty"`
	HeadLen int        `json:"headersSize"`
	BodyLen int64      `json:"bodySize"`
}

type postData struct {
	Type   string   `json:"mimeType"`
	Params []string `json:"params"`
	Text   string   `json:"text"`
}

type harReply struct {
	Status   int        `json:"status"`
	Reason   string     `json:"statusText"`
	Version  string     `json:"httpVersion"`
	Cookies  []harField `json:"cookies"`
	Header   []harField `json:"headers"`
	Content  harContent `json:"content"`
	Redirect string     `json:"redirectURL"`
	HeadLen  int        `json:"headersSize"`
	BodyLen  int64      `json:"bodySize"`
}

type harContent struct {
	Size     int    `json:"size"`
	Type     string `json:"mimeType"`
	Text     string `json:"text,omitempty"`
	Encoding string `json:"encoding,omitempty"`
}

type harTimings struct {
	Send    float64 `json:"send"`
	Wait    float64 `json:"wait"`
	Receive float64 `json:"receive"`
}

type harSession struct {
	Session  string `json:"session"`
	Request  int64  `json:"requestWire"` // bytes on the wire
	Response int64  `json:"responseWire"`
}

// unknown is a size that is not known.
const unknown = -1

// write writes an entry. reply is nil if there is none.
func (a *archive) write(r *resendable, reply *facts.Asked, body []byte) error {
	e := &harEntry{Started: r.First.UTC().Format(time.RFC3339Nano), Request: harRequest{
		Method: r.method, URL: r.url, Version: "HTTP/1.1", Cookies: []harField{}, Header: r.fields, Query: query(r.url),
		HeadLen: len(r.Head), BodyLen: int64(len(r.body)),
	}}
	e.Reply = harReply{
		Version: "HTTP/1.1", Cookies: []harField{}, Header: []harField{}, HeadLen: unknown, BodyLen: unknown,
	}
	if len(r.body) > 0 {
		e.Request.Post = &postData{Type: typeOf(r.fields), Params: []string{}, Text: string(r.body)}
	}
	if r.Dst.IsValid() {
		e.Server = r.Dst.Addr().String()
	}
	if r.HHFR {
		e.Hhfr = &harSession{Session: r.SessionString(), Request: r.Wire}
	}
	if reply != nil {
		e.answer(r, reply, body)
	}
	before := ",\n"
	if a.entries++; a.entries == 1 {
		before = harBegin
	}
	if _, err := io.WriteString(a.w, before); err != nil {
		return err
	}
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = printing.Escaping{Writer: a.w}.Write(line)
	return err
}

// answer adds the reply.
func (e *harEntry) answer(r *resendable, reply *facts.Asked, body []byte) {
	h, ok := replyHead(*reply)
	if !ok {
		return
	}
	e.Reply.Status, e.Reply.Reason = h.Status(), http.StatusText(h.Status())
	e.Reply.Header, e.Reply.HeadLen, e.Reply.BodyLen = fieldsOf(&h), len(reply.Head), int64(len(body))
	e.Reply.Redirect = location(&h)
	e.Reply.Content = harContent{Size: len(body), Type: typeOf(e.Reply.Header), Text: string(body)}
	if !utf8.Valid(body) {
		e.Reply.Content.Text, e.Reply.Content.Encoding = base64.StdEncoding.EncodeToString(body), "base64"
	}
	e.Time = printing.Millis(reply.Took)
	if !reply.First.IsZero() && !r.First.IsZero() {
		e.Timings.Wait = max(printing.Millis(reply.First.Sub(r.First)), 0)
		e.Timings.Receive = max(e.Time-e.Timings.Wait, 0)
	}
	if e.Hhfr != nil {
		e.Hhfr.Response = reply.Wire
	}
}

const harBegin = `{"log":{"version":"1.2","creator":{"name":"hhfr","version":"1"},"entries":[` + "\n"

func (a *archive) close() error {
	end := "\n]}}\n"
	if a.entries == 0 {
		end = harBegin + "]}}\n"
	}
	_, err := io.WriteString(a.w, end)
	return err
}

func query(target string) []harField {
	list := []harField{}
	u, err := url.Parse(target)
	if err != nil {
		return list
	}
	values := u.Query()
	for name, all := range values {
		for _, v := range all {
			list = append(list, harField{name, v})
		}
	}
	slices.SortStableFunc(list, func(a, b harField) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func typeOf(fields []harField) string {
	for _, f := range fields {
		if http.CanonicalHeaderKey(f.Name) == "Content-Type" {
			return f.Value
		}
	}
	return "application/octet-stream"
}

func location(h *http1.Head) string {
	value, _ := h.Get("Location")
	return string(value)
}
