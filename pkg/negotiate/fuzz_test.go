package negotiate

import (
	"net/http"
	"testing"

	"github.com/hhfr/hhfr/pkg/streamer"
)

// FuzzField reads the fields of requests that ask, and of answers; what is read of an answer is
// written the same.
func FuzzField(f *testing.F) {
	i := Invitation{
		Transport: "tls",
		Address:   ":8443",
		Session:   SessionID{1},
		Token:     make([]byte, streamer.TokenLen),
		Lifetime:  3600e9,
	}
	for _, seed := range []string{"1", "1;7", "1;0", "1;address=\":9090\"", i.String(), "2", "1;x", "1;token=\"00\"",
		"1; lifetime=0", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		req := &http.Request{
			Header:     http.Header{"Hhfr": {value}, "Connection": {"keep-alive, Upgrade"}, "Upgrade": {"x, hhfr/1"}},
			ProtoMajor: 1,
			ProtoMinor: 1,
		}
		if stages, upgrade, ok := Asks(req); ok && !upgrade || !ok && stages != 0 {
			t.Fatalf("%q: %d, %t, %t", value, stages, upgrade, ok)
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
