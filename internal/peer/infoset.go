package peer

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"

	"github.com/hhfr/hhfr/internal/codec/fastinfoset"
	"github.com/hhfr/hhfr/internal/infosets"
	"github.com/hhfr/hhfr/pkg/soap"
)

// maxInfoset is the longest request in Fast Infoset, and the longest reply that is converted to it,
// in bytes: both are in memory as a whole. A request as XML is as long as others may be.
const maxInfoset = 4 << 20

// maxEntries is how many entries a table of a request may have, each of up to 72 bytes in memory.
const maxEntries = 1 << 17

// withInfosets answers requests in Fast Infoset, and those that accept it, in Fast Infoset. The
// handler knows XML alone. A reply that is too long, or no XML, goes as it is.
func withInfosets(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		media := soap.ParseContentType(r.Header.Get("Content-Type"))
		in := infosets.Is(media)
		switch {
		case in:
		case acceptsInfosets(r.Header.Values("Accept")):
			w.Header().Add("Vary", "Accept")
		default:
			next.ServeHTTP(w, r)
			return
		}
		reply := &infosetReply{to: w, status: http.StatusOK}
		asked, err := r, error(nil)
		if in {
			asked, err = inXML(r, media)
		}
		if err != nil {
			sendError(reply, r, media.BinaryVersion(), err)
		} else {
			next.ServeHTTP(reply, asked)
		}
		reply.end()
	})
}

// acceptsInfosets reports whether fields of Accept name one of infosets, and do not refuse it by
// q=0 (RFC 9110 12.5.1). Neither ranges with * nor those that cannot be read ask for it.
func acceptsInfosets(fields []string) bool {
	for _, field := range fields {
		for field != "" {
			var one string
			one, field = cutList(field)
			kind, params, err := mime.ParseMediaType(one)
			if err != nil || !infosets.Is(soap.Media{Type: kind}) {
				continue
			}
			if weight, err := strconv.ParseFloat(cmp.Or(params["q"], "1"), 32); err == nil && weight > 0 {
				return true
			}
		}
	}
	return false
}

// cutList cuts a list behind its first member: at a comma that is not in quotes.
func cutList(list string) (first, rest string) {
	quoted := false
	for i := 0; i < len(list); i++ {
		switch {
		case list[i] == '"':
			quoted = !quoted
		case list[i] == '\\' && quoted:
			i++
		case list[i] == ',' && !quoted:
			return list[:i], list[i+1:]
		}
	}
	return list, ""
}

// inXML is a request in Fast Infoset as one in XML. Errors: a refusal.
func inXML(r *http.Request, media soap.Media) (*http.Request, error) {
	body, _ := text(r)
	doc, err := io.ReadAll(io.LimitReader(body, maxInfoset+1))
	if err != nil {
		return nil, err
	}
	if len(doc) > maxInfoset {
		return nil, refuse("the request is longer than %d bytes in Fast Infoset", maxInfoset)
	}
	from := fastinfoset.Reader{NoDoctype: true, Limits: fastinfoset.Limits{
		Entries: maxEntries, TextBytes: maxRequest,
	}}
	from.Reset(doc)
	xml := bufio.NewReader(readable{fastinfoset.NewTextReader(&from)})
	start, err := xml.Peek(recognized)
	if len(start) == 0 {
		return nil, err
	}
	contentType, err := soap.ContentType(soap.Recognize(start).Version, media.Action)
	if err != nil {
		return nil, refuse("the action: %v", err)
	}
	asked := *r
	asked.Header = r.Header.Clone()
	asked.Header.Del("Content-Encoding")
	asked.Header.Del("Content-Length")
	asked.Header.Set("Content-Type", contentType)
	asked.Body, asked.ContentLength = io.NopCloser(xml), -1
	return &asked, nil
}

// recognized is how much of an envelope tells its version, in bytes.
const recognized = 1 << 10

// readable reads a request as XML, and has a refusal for what is wrong with it.
type readable struct{ from io.Reader }

func (r readable) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = refuse("the request cannot be read: %v", err)
	}
	return n, err
}

// infosetReply keeps a reply in XML until its end, and sends it in Fast Infoset.
type infosetReply struct {
	to     http.ResponseWriter
	status int
	begun  bool // by the handler
	asIs   bool // it goes as it is
	body   []byte
}

// Header implements [http.ResponseWriter].
func (i *infosetReply) Header() http.Header { return i.to.Header() }

// WriteHeader implements [http.ResponseWriter].
func (i *infosetReply) WriteHeader(status int) {
	switch {
	case status < http.StatusOK:
		i.to.WriteHeader(status)
	case !i.begun:
		i.begun, i.status = true, status
		h := i.Header()
		length, _ := strconv.Atoi(h.Get("Content-Length")) // 0: none is said
		if soap.ParseContentType(h.Get("Content-Type")).Version() == soap.None || length > maxInfoset ||
			h.Get("Content-Encoding") != "" {
			i.asItIs()
		}
	}
}

// Write implements [io.Writer].
func (i *infosetReply) Write(b []byte) (int, error) {
	i.WriteHeader(http.StatusOK)
	if !i.asIs && len(i.body)+len(b) > maxInfoset {
		i.asItIs()
	}
	if i.asIs {
		return i.to.Write(b)
	}
	i.body = append(i.body, b...)
	return len(b), nil
}

// asItIs sends what is there of a reply, and from then on all of it, without conversion.
func (i *infosetReply) asItIs() {
	i.asIs = true
	i.to.WriteHeader(i.status)
	if len(i.body) > 0 {
		_, _ = i.to.Write(i.body) // the server knows if it does not get through
	}
	i.body = nil
}

// end sends the reply.
func (i *infosetReply) end() {
	if i.asIs {
		return
	}
	doc, err := new(fastinfoset.InfosetWriter).FromXML(nil, i.body)
	if err != nil || !i.begun {
		i.asItIs()
		return
	}
	h := i.Header()
	media := soap.ParseContentType(h.Get("Content-Type"))
	h.Set("Content-Type", infosets.ContentType(media.Version(), media.Action))
	h.Set("Content-Length", strconv.Itoa(len(doc)))
	i.to.WriteHeader(i.status)
	_, _ = i.to.Write(doc)
}
