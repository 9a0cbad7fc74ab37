package httpmsg

import (
	"net/url"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// ForwardedHead returns the head of the HTTP request that a message of a stream becomes when it
// goes to a server, with its method. The head ends before the fields of the body and the empty
// line. ForwardedHead refuses what RFC 9112 forbids, and what leads elsewhere than to that server
// or to where the session was negotiated. Errors: Malformed.
func ForwardedHead(m *streamer.Message, facts *negotiate.Facts, server *url.URL) (method string, head []byte, _ error) {
	octets := m.Head
	if octets == nil {
		octets = negotiate.DefaultRequestHead(facts.Path)
	}
	h, n, err := http1.ParseHead(octets, 0)
	if err != nil || h.IsReply() {
		return "", nil, &negotiate.Error{Code: negotiate.Malformed, At: int64(n), Remote: true, Err: err}
	}
	if err := http1.CheckFields(&h); err != nil {
		return "", nil, negotiate.AsMalformed(err)
	}
	target, err := http1.OriginForm(&h, func(scheme, authority string) bool {
		u, err := url.Parse(scheme + "://" + authority)
		return err == nil && u.User == nil &&
			(negotiate.Origin(u) == facts.Origin || negotiate.Origin(u) == negotiate.Origin(server))
	})
	if err == nil {
		head, err = http1.AppendRequestLine(nil, string(h.Method()), target, "HTTP/1.1")
	}
	connection := h.Tokens("Connection")
	for _, f := range h.Fields() {
		if err == nil && !f.Is("Host") && !f.Is(negotiate.Field) && !f.Is("Content-Length") && !f.Is("Expect") &&
			!http1.IsHop(f, connection) {
			head, err = http1.AppendField(head, string(f.Name), string(f.Unfolded()))
		}
	}
	if err != nil {
		return "", nil, negotiate.AsMalformed(err)
	}
	return string(h.Method()), append(head, "Host: "+server.Host+"\r\nConnection: close\r\n"...), nil
}
