package login

import (
	"bytes"
	"slices"
	"time"

	"github.com/hhfr/hhfr/internal/xmltext"
)

// Stamp is an envelope with the UsernameToken and the Timestamp of its Security header made new, of
// what logs in now. An envelope without them, or with a signature, which would be broken, stays as
// it is.
func (o *Login) Stamp(envelope []byte, password string, now time.Time) []byte {
	if !bytes.Contains(envelope, []byte(wsseSpace)) {
		return envelope
	}
	declarations := ` xmlns:wsse="` + wsseSpace + `" xmlns:wsu="` + wsuSpace + `"`
	made := map[string]string{
		"Timestamp":     timestamp(declarations, now),
		"UsernameToken": o.token(declarations, password, now),
	}
	var out []byte
	var path []string
	from, begin := 0, 0 // of what is not copied yet; of the element that is replaced
	tokens := xmltext.New(envelope)
	for {
		t, err := tokens.Next()
		if err != nil {
			break
		}
		switch name := localName(envelope[t.NameFrom:t.NameTo]); t.Kind {
		case xmltext.Start:
			path = append(path, name)
			if len(path) == len(inSecurity)+1 {
				begin = t.From
			}
			if slices.Equal(path, append(slices.Clone(inSecurity), "Signature")) {
				return envelope
			}
		case xmltext.End:
			if len(path) == 0 {
				return envelope
			}
			if n := len(path) - 1; n == len(inSecurity) && slices.Equal(path[:n], inSecurity) && made[name] != "" {
				out = append(append(out, envelope[from:begin]...), made[name]...)
				from = t.To
			}
			path = path[:len(path)-1]
		default:
		}
	}
	return append(out, envelope[from:]...)
}

// inSecurity are the elements around those of a Security header.
var inSecurity = []string{"Envelope", "Header", "Security"}

func localName(name []byte) string { return string(name[bytes.IndexByte(name, ':')+1:]) }
