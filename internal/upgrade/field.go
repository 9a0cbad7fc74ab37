// Package upgrade has the fields by which an HTTP request asks for a stream, and by which its
// answer gives one or says where it is (docs/negotiation.md, section 6).
package upgrade

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
	"github.com/hhfr/hhfr/internal/wire"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Version is that of the rules of the field.
const Version = "1"

// SwitchingProtocols returns the head with status 101. address is where streams are opened later;
// empty for where this connection goes. onePath: the stream takes only requests for the path that
// the upgraded one was for.
func SwitchingProtocols(address string, onePath bool) []byte {
	head := "HTTP/1.1 101 \r\nConnection: Upgrade\r\nUpgrade: " + negotiate.Protocol + "\r\n"
	var parameters string
	if address != "" {
		parameters += `;address="` + address + `"`
	}
	if onePath {
		parameters += ";" + scope + "=" + pathScope
	}
	if parameters != "" {
		head += negotiate.Field + ": " + Version + parameters + "\r\n"
	}
	return []byte(head + "\r\n")
}

// scope is the parameter of a 101 that says which requests the stream takes: pathScope for those
// of one path.
const (
	scope     = "scope"
	pathScope = "path"
)

// Wish is what a request asks for.
type Wish struct {
	// Stages are those that the initiator wants, and [streamer.BriefHello].
	Stages uint64
	// Description names the description of the service that the initiator has, as in hello
	// (docs/wire-format.md, section 3); nil: none.
	Description []byte
}

// unnamed are the stages that a request wants that names none.
const unnamed = wire.Columns | wire.Memory | wire.Zstd

// describes is the parameter that names a description.
const describes = "description="

// Asks reports whether a request asks for a stream, what it asks for, and whether its connection
// can be upgraded.
func Asks(req *http.Request) (wish Wish, upgrade, ok bool) {
	value := req.Header.Get(negotiate.Field)
	scheme, rest, more := strings.Cut(value, ";")
	if strings.TrimSpace(scheme) != Version {
		return Wish{}, false, false
	}
	wish.Stages = unnamed
	for more {
		var parameter string
		parameter, rest, more = strings.Cut(rest, ";")
		parameter = strings.TrimSpace(parameter)
		if digits, named := strings.CutPrefix(parameter, describes); named {
			name, err := hex.DecodeString(digits)
			if err != nil || len(name) != streamer.DescriptionLen {
				return Wish{}, false, false
			}
			wish.Description = name
			continue
		}
		n, err := strconv.ParseUint(parameter, 10, 63)
		if err != nil {
			return Wish{}, false, false
		}
		wish.Stages = n
	}
	return wish, req.ProtoMajor == 1 && req.ProtoMinor == 1 && HasToken(req.Header, "Connection", "upgrade") &&
		HasToken(req.Header, "Upgrade", negotiate.Protocol), true
}

// String returns the field of a request that asks for this.
func (w Wish) String() string {
	value := Version + ";" + strconv.FormatUint(w.Stages, 10)
	if w.Description != nil {
		value += ";" + describes + hex.EncodeToString(w.Description)
	}
	return value
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
	Session            negotiate.SessionID
	Token              []byte
	Lifetime           time.Duration
	OnePath            bool // of a 101: the stream takes only requests for the path of this one
}

// String returns the field of an answer.
func (i *Invitation) String() string {
	return fmt.Sprintf(`%s;address="%s";session="%s";token="%s";lifetime=%d;transport=%s`, Version,
		i.Address, i.Session, hex.EncodeToString(i.Token), i.Lifetime/time.Second, i.Transport)
}

// ParseInvitation reads the field of an answer. That of a 101 has at most an address
// and a scope.
func ParseInvitation(value string) (*Invitation, error) {
	scheme, params, err := mime.ParseMediaType(value)
	if err != nil || scheme != Version {
		return nil, negotiate.AsMalformed(fmt.Errorf("field %s: %.60q", negotiate.Field, value))
	}
	i := &Invitation{Transport: params["transport"], Address: params["address"], OnePath: params[scope] == pathScope}
	if negotiate.CheckText(i.Address) != nil || negotiate.CheckText(i.Transport) != nil ||
		strings.ContainsAny(i.Address, `"\`) {
		return nil, negotiate.AsMalformed(fmt.Errorf("field %s has a bad value", negotiate.Field))
	}
	if params["token"] == "" {
		return i, nil
	}
	if i.Address == "" || !http1.IsToken([]byte(i.Transport)) {
		return nil, negotiate.AsMalformed(fmt.Errorf("field %s: address and transport", negotiate.Field))
	}
	if i.Session, err = negotiate.ParseSessionID(params["session"]); err != nil {
		return nil, err
	}
	if i.Token, err = hex.DecodeString(params["token"]); err != nil || len(i.Token) != streamer.TokenLen {
		return nil, negotiate.AsMalformed(fmt.Errorf("field %s: token", negotiate.Field))
	}
	seconds, err := strconv.ParseUint(params["lifetime"], 10, 31)
	if err != nil || seconds == 0 {
		return nil, negotiate.AsMalformed(fmt.Errorf("field %s: lifetime", negotiate.Field))
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
