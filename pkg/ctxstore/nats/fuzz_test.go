package nats_test

import (
	"strings"
	"testing"

	client "github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/nats"
)

// The key of a URI is one that servers take, no other URI has it, and lists by any beginning of the
// URI find it. What is read as a key of somebody else's bucket is a URI or nothing.
func FuzzKey(f *testing.F) {
	for _, seed := range []string{
		"urn:hhfr:session:6f1c3c629d0f4c5e8a550f2d6f0e7b41", "urn:hhfr:agreed:00:scheme", "http://a.example/b?c=d&e",
		"urn:hhfr:", "urn:hhfr:session:", "urn:hhfr::x", "urn:hhfr:Session:x", "urn:x:\xff.*> =2E",
		strings.Repeat("urn:x:long", 300),
		"hhfr.session.00=2E", "uri.=zz", "hhfr..", "uri.urn=3A",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		_, _ = nats.URIOf(uri) // as a key: it does not panic
		if ctxstore.CheckURI(uri) != nil {
			return
		}
		key, long := nats.KeyOf(uri)
		require.LessOrEqual(t, len(key), 2048)
		require.NotContains(t, key, "..")
		require.False(t, strings.ContainsAny(key, " *>\r\n\t") || strings.HasSuffix(key, "."), "%q", key)
		again, ok := nats.URIOf(key)
		require.Equal(t, !long, ok)
		if ok {
			require.Equal(t, uri, again)
		}
		for n := range min(len(uri)+1, 40) {
			found := false
			for _, filter := range nats.Filters(uri[:n]) {
				found = found || strings.HasPrefix(key, strings.TrimSuffix(filter, ">"))
			}
			require.True(t, found, "%q is not under %q", key, uri[:n])
		}
	})
}

// The fields of a message that others put into a bucket are read, or refused; a value in parts is
// never said to be longer than one may be.
func FuzzState(f *testing.F) {
	f.Add("", "", "", "")
	f.Add("2027-01-02T03:04:05.000000000Z", "75726e3a78", "part.00 3 3000000", "")
	f.Add("never", "zz", "part.* 1 1", "")
	f.Add("", "", "part.00 -1 99999999999999999999", "DEL")
	f.Fuzz(func(t *testing.T, expires, uri, parts, operation string) {
		h := client.Header{}
		for name, value := range map[string]string{
			"Hhfr-Expires": expires, "Hhfr-Uri": uri, "Hhfr-Parts": parts, "KV-Operation": operation,
		} {
			if value != "" {
				h.Set(name, value)
			}
		}
		size, err := nats.ReadState(h)
		assert.True(t, err != nil || size >= 0 && size <= ctxstore.MaxValue, "%d", size)
	})
}

// A name of a bucket is refused, or names servers without user or password.
func FuzzName(f *testing.F) {
	for _, seed := range []string{
		"nats://127.0.0.1/contexts", "nats+tls://a.example:4222,b.example/x?replicas=3&storage=memory",
		"nats://user:word@a/b", "nats://a/b?replicas=6", "nats://a/b/c", "nats:///b", "nats://a,/b?credentials=x", "x",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		servers, err := nats.ReadName(text)
		if err != nil {
			require.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.Invalid})
			return
		}
		require.NotEmpty(t, servers)
		for _, s := range servers {
			require.NotContains(t, s, "@")
		}
	})
}
