package negotiate

import (
	"context"
	"encoding/hex"
	"fmt"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// The fields by which a request asks for a stream, and an answer offers one (docs/negotiation.md,
// section 6).
const (
	// Field is in requests that ask, and in answers to requests whose connection could not be
	// upgraded.
	Field = "HHFR"
	// Protocol is what connections are upgraded to, and the ALPN name of streams in TLS.
	Protocol = "hhfr/1"

	FieldScheme = "1"
)

// SwitchingProtocols returns the head with status 101. address is where streams are opened later;
// empty for where this connection goes.
func SwitchingProtocols(address string) []byte {
	head := "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + Protocol + "\r\n"
	if address != "" {
		head += Field + ": " + FieldScheme + `;address="` + address + "\"\r\n"
	}
	return []byte(head + "\r\n")
}

// Asks reports whether a request asks for a stream, with which stages, and whether its connection
// can be upgraded.
func Asks(req *http.Request) (stages uint64, upgrade, ok bool) {
	value := req.Header.Get(Field)
	scheme, rest, more := strings.Cut(value, ";")
	if strings.TrimSpace(scheme) != FieldScheme {
		return 0, false, false
	}
	stages = ^uint64(0)
	if more {
		n, err := strconv.ParseUint(strings.TrimSpace(rest), 10, 63)
		if err != nil {
			return 0, false, false
		}
		stages = n
	}
	return stages, req.ProtoMajor == 1 && req.ProtoMinor == 1 && HasToken(req.Header, "Connection", "upgrade") &&
		HasToken(req.Header, "Upgrade", Protocol), true
}

// AskValue returns the field of a request that asks, for a stream with these stages.
func AskValue(stages uint64) string {
	if stages == streamer.AllStages {
		return FieldScheme
	}
	return FieldScheme + ";" + strconv.FormatUint(stages, 10)
}

// HasToken reports whether a list of tokens has one, in any case.
func HasToken(h http.Header, name, token string) bool {
	for _, v := range h.Values(name) {
		for t := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(t), token) {
				return true
			}
		}
	}
	return false
}

// Invitation is the content of the field in an answer.
type Invitation struct {
	Transport, Address string
	Session            SessionID
	Token              []byte
	Lifetime           time.Duration
}

// String returns the field of an answer.
func (i *Invitation) String() string {
	return fmt.Sprintf(`%s;address="%s";session="%s";token="%s";lifetime=%d;transport=%s`, FieldScheme,
		i.Address, i.Session, hex.EncodeToString(i.Token), i.Lifetime/time.Second, i.Transport)
}

// ParseInvitation reads the field of an answer. That of a 101 has at most an address.
func ParseInvitation(value string) (*Invitation, error) {
	scheme, params, err := mime.ParseMediaType(value)
	if err != nil || scheme != FieldScheme {
		return nil, AsMalformed(fmt.Errorf("field %s: %.60q", Field, value))
	}
	i := &Invitation{Transport: params["transport"], Address: params["address"]}
	if CheckText(i.Address) != nil || CheckText(i.Transport) != nil || strings.ContainsAny(i.Address, `"\`) {
		return nil, AsMalformed(fmt.Errorf("field %s has a bad value", Field))
	}
	if params["token"] == "" {
		return i, nil
	}
	if i.Address == "" || !http1.IsToken([]byte(i.Transport)) {
		return nil, AsMalformed(fmt.Errorf("field %s: address and transport", Field))
	}
	if i.Session, err = ParseSessionID(params["session"]); err != nil {
		return nil, err
	}
	if i.Token, err = hex.DecodeString(params["token"]); err != nil || len(i.Token) != streamer.TokenLen {
		return nil, AsMalformed(fmt.Errorf("field %s: token", Field))
	}
	seconds, err := strconv.ParseUint(params["lifetime"], 10, 31)
	if err != nil || seconds == 0 {
		return nil, AsMalformed(fmt.Errorf("field %s: lifetime", Field))
	}
	i.Lifetime = time.Duration(seconds) * time.Second
	return i, nil
}

// WithLocalAddr adds the address at which a request came in to a context, as the server of net/http
// does.
func WithLocalAddr(ctx context.Context, addr net.Addr) context.Context {
	return context.WithValue(ctx, http.LocalAddrContextKey, addr)
}

// OwnPort returns ":PORT" of the address that a request came in at; ":0" if that is not known.
func OwnPort(req *http.Request) string {
	if local, ok := req.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if _, port, err := net.SplitHostPort(local.String()); err == nil {
			return ":" + port
		}
	}
	return ":0"
}
