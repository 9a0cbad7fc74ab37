package upgrade

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// FuzzField reads the fields of requests that ask, and of answers; what is read of an answer is
// written the same.
func FuzzField(f *testing.F) {
	i := Invitation{
		Transport: "tls",
		Address:   ":8443",
		Session:   negotiate.SessionID{1},
		Token:     make([]byte, streamer.TokenLen),
		Lifetime:  3600e9,
	}
	for _, seed := range []string{"1", "1;7",
		"1;55", "1;7;description=0011223344556677", "1; description=00",
		"1;0", "1;address=\":9090\"", "1;scope=path", i.String(), "2", "1;x", "1;token=\"00\"",
		"1; lifetime=0", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		req := &http.Request{
			Header:     http.Header{"Hhfr": {value}, "Connection": {"keep-alive, Upgrade"}, "Upgrade": {"x, hhfr/1"}},
			ProtoMajor: 1,
			ProtoMinor: 1,
		}
		wish, upgrade, ok := Asks(req)
		if ok && !upgrade || !ok && (wish.Stages != 0 || wish.Description != nil) {
			t.Fatalf("%q: %+v, %t, %t", value, wish, upgrade, ok)
		}
		wish.Stages &= streamer.AllStages
		req.Header["Hhfr"] = []string{wish.String()}
		if again, _, same := Asks(req); ok && (!same || again.Stages&streamer.AllStages != wish.Stages ||
			!bytes.Equal(again.Description, wish.Description)) {
			t.Fatalf("%q: %+v, then %+v", value, wish, again)
		}
		read, err := ParseInvitation(value)
		if err != nil || read.Token == nil {
			return
		}
		again, err := ParseInvitation(read.String())
		if err != nil || again.Session != read.Session || string(again.Token) != string(read.Token) ||
			again.Lifetime != read.Lifetime {
			t.Fatalf("%q: %+v, then %+v (%v)", value, read, again, err)
		}
	})
}
