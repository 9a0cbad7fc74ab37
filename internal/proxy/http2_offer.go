package proxy

import (
	"bytes"
	"slices"
	"strings"

	"github.com/hhfr/hhfr/internal/http1"
)

// withoutHTTP2 returns the head of a request without its offer to go on in HTTP/2 (h2c, which RFC
// 9113 no longer has), if it offers that and nothing else. Its fields are for the next hop only: a
// near proxy takes them out, since a request that may end HTTP on its connection travels without
// the shapes of whole messages. nil: it does not offer that.
func withoutHTTP2(h *http1.Head) *http1.Head {
	if offered := h.Tokens("Upgrade"); len(offered) != 1 || offered[0] != "h2c" || h.IsReply() {
		return nil
	}
	at := len(h.Before()) + len(h.StartLine())
	at += bytes.IndexByte(h.Octets[at:], '\n') + 1
	b := append(make([]byte, 0, len(h.Octets)), h.Octets[:at]...)
	for _, f := range h.Fields() {
		at += len(f.Raw)
		switch {
		case f.Is("Upgrade"), f.Is("HTTP2-Settings"):
		case f.Is("Connection"):
			b = append(b, withoutOptions(f, "upgrade", "http2-settings")...)
		default:
			b = append(b, f.Raw...)
		}
	}
	rest, _, err := http1.ParseHead(append(b, h.Octets[at:]...), 0)
	if err != nil {
		return nil
	}
	return &rest
}

// withoutOptions is a field of a list without some of its entries, as it stands otherwise; empty if
// it has no others.
func withoutOptions(f http1.FieldLine, out ...string) []byte {
	var kept [][]byte
	for entry := range bytes.SplitSeq(f.Value, []byte{','}) {
		if !slices.Contains(out, strings.ToLower(string(bytes.TrimSpace(entry)))) {
			kept = append(kept, entry)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	value := bytes.TrimSpace(bytes.Join(kept, []byte{','}))
	at := bytes.LastIndex(f.Raw, f.Value)
	return slices.Concat(f.Raw[:at], value, f.Raw[at+len(f.Value):])
}
