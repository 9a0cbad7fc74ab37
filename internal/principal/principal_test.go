package principal_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/principal"
)

const (
	soap   = "Content-Type: text/xml"
	basic  = "Authorization: Basic dXNlcjpzZWNyZXQ=" // user:secret
	wrong  = "Authorization: Basic dXNlcjp3cm9uZw==" // user:wrong
	bearer = "Authorization: Bearer 9d1f7a4c"        //
	cookie = "Cookie: lang=de; JSESSIONID=0123456789ABCDEF"
)

var (
	start  = time.Date(2026, 3, 14, 9, 27, 0, 0, time.UTC)
	device = principal.Peer{Addr: netip.MustParseAddr("192.0.2.10")}
	other  = principal.Peer{Addr: netip.MustParseAddr("192.0.2.11")}
	owner  = principal.Peer{Addr: device.Addr, Certificate: []byte("a certificate")}
)

func registry(mode principal.Mode) *principal.Registry {
	return principal.NewRegistry(mode, [32]byte{1, 2, 3})
}

// head is one of a request: a method, unless it is a POST, and fields.
func head(t testing.TB, fields ...string) *http1.Head {
	t.Helper()
	method := "POST"
	if len(fields) > 0 && !strings.Contains(fields[0], ":") {
		method, fields = fields[0], fields[1:]
	}
	text := method + " /service HTTP/1.1\r\nHost: h\r\n"
	for _, one := range fields {
		text += one + "\r\n"
	}
	h, _, err := http1.ParseHead([]byte(text+"\r\n"), 0)
	require.NoError(t, err)
	return &h
}

// Which requests may share what another connection of the same client said, in each mode.
func TestWhichRequestsShare(t *testing.T) {
	loopback := principal.Peer{Addr: netip.MustParseAddr("127.0.0.1")}
	for _, tt := range []struct {
		name               string
		from               principal.Peer
		fields             []string
		byProof, byAddress bool
	}{
		{"Basic", device, []string{soap, basic}, true, true},
		{"Bearer", device, []string{soap, bearer}, true, true},
		{"bearer, in lower case", device, []string{soap, strings.ToLower(bearer)}, true, true},
		{"cookie", device, []string{soap, cookie}, true, true},
		{"certificate", owner, []string{soap}, true, true},
		{"all of them", owner, []string{soap, basic, cookie}, true, true},
		{"SOAP 1.2", device, []string{"Content-Type: Application/SOAP+XML; action=a", basic}, true, true},
		{"attachments", device, []string{`Content-Type: multipart/related; type="text/xml"`, basic}, true, true},
		{"IPv6", principal.Peer{Addr: netip.MustParseAddr("2001:db8::1")}, []string{soap, basic}, true, true},

		{"no proof", device, []string{soap}, false, true},
		{"a short cookie", device, []string{soap, "Cookie: lang=de; theme=dark"}, false, true},
		{"Basic without password", device, []string{soap, "Authorization: Basic dXNlcjo="}, false, true},
		{"Basic that is none", device, []string{soap, "Authorization: Basic !"}, false, true},
		{"Bearer without token", device, []string{soap, "Authorization: Bearer "}, false, true},
		{"Digest", device, []string{soap, `Authorization: Digest username="user", response="0123456789"`}, false, true},
		{"Digest, and a cookie", device, []string{soap, `Authorization: Digest username="u"`, cookie}, false, true},
		{"NTLM", device, []string{soap, "Authorization: NTLM TlRMTVNTUAADAAAA"}, false, true},
		{"Negotiate", device, []string{soap, "Authorization: Negotiate YIIFzw"}, false, true},
		{"two, one of them Digest", device, []string{soap, basic, `Authorization: Digest username="u"`}, false, true},

		{"loopback", loopback, []string{soap, basic}, false, true},
		{"loopback, as IPv6 has it", principal.Peer{Addr: netip.MustParseAddr("::ffff:127.0.0.1")},
			[]string{soap, basic}, false, true},
		{"IPv6 loopback", principal.Peer{Addr: netip.IPv6Loopback()}, []string{soap, basic}, false, true},
		{"X-Forwarded-For", device, []string{soap, basic, "X-Forwarded-For: 198.51.100.7"}, false, true},
		{"X-Forwarded-Proto", device, []string{soap, basic, "x-forwarded-proto: https"}, false, true},
		{"X-Real-IP", device, []string{soap, basic, "X-Real-IP: 198.51.100.7"}, false, true},
		{"Forwarded", device, []string{soap, basic, "Forwarded: for=198.51.100.7"}, false, true},
		{"Via", device, []string{soap, basic, "Via: 1.1 gate"}, false, true},

		{"no address", principal.Peer{}, []string{soap, basic}, false, false},
		{"Origin", device, []string{soap, basic, "Origin: http://page.example"}, false, false},
		{"Origin null", device, []string{soap, basic, "Origin: null"}, false, false},
		{"Referer", device, []string{soap, basic, "Referer: http://page.example/a"}, false, false},
		{"Sec-Fetch-Site", device, []string{soap, basic, "Sec-Fetch-Site: none"}, false, false},
		{"Sec-Fetch-Mode", device, []string{soap, basic, "sec-fetch-mode: cors"}, false, false},
		{"GET", device, []string{"GET", basic}, false, false},
		{"GET with a type", device, []string{"GET", soap, basic}, false, false},
		{"NOTIFY", device, []string{"NOTIFY", soap, basic}, false, false},
		{"text/plain", device, []string{"Content-Type: text/plain", basic}, false, false},
		{"text/xml2", device, []string{"Content-Type: text/xml2", basic}, false, false},
		{"application/xml", device, []string{"Content-Type: application/xml", basic}, false, false},
		{"a form", device, []string{"Content-Type: application/x-www-form-urlencoded", basic}, false, false},
		{"a form with files", device, []string{"Content-Type: multipart/form-data; boundary=b", basic}, false, false},
		{"no type", device, []string{basic, "Content-Length: 4"}, false, false},
		{"no type, chunked", device, []string{basic, "Transfer-Encoding: chunked"}, false, false},
		{"two types", device, []string{soap, soap, basic}, false, false},
		{"an upgrade", device, []string{soap, "Upgrade: websocket", basic}, false, false},
		{"nothing, as CWMP has it", device, []string{basic, "Content-Length: 0"}, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for mode, want := range map[principal.Mode]bool{
				principal.ByProof: tt.byProof, principal.ByAddress: tt.byAddress, principal.ByConnection: false,
			} {
				var c principal.Client
				v := registry(mode).Judge(tt.from, head(t, tt.fields...), true, start)
				assert.False(t, c.Next(v), "nothing was said before")
				assert.Equal(t, want, c.Key.IsShared(), "mode %d", mode)
				if want {
					assert.Equal(t, tt.from.Addr.Unmap(), c.Key.Addr())
				}
			}
		})
	}
}

// Keys are the same for the same address and proof, and for nobody else. Two registries, as two
// processes, have others.
func TestKeys(t *testing.T) {
	key := func(r *principal.Registry, from principal.Peer, fields ...string) principal.Key {
		return r.Judge(from, head(t, append(fields, soap)...), true, start).Key
	}
	a := key(registry(principal.ByProof), device, basic)
	assert.Equal(t, a, key(registry(principal.ByProof), device, "User-Agent: x", basic))
	assert.NotEqual(t, a, key(registry(principal.ByProof), other, basic))
	assert.NotEqual(t, a, key(registry(principal.ByProof), device, wrong))
	assert.NotEqual(t, a, key(registry(principal.ByProof), device, basic, cookie))
	assert.NotEqual(t, a, key(registry(principal.ByProof), owner, basic))
	assert.NotEqual(t, a, key(principal.NewRegistry(principal.ByProof, [32]byte{9}), device, basic))
	assert.NotContains(t, fmt.Sprintf("%+q", fmt.Sprint(a)), "secret")
}

// What the next request of a connection does to the memory that it uses.
func TestRequestsOfOneConnection(t *testing.T) {
	const via, page = "Via: 1.1 gate", "Origin: http://page.example"
	forwarded := []string{soap, basic, "X-Forwarded-For: 198.51.100.7"}
	for _, tt := range []struct {
		name          string
		before, after []string
		forgets       bool
		shares        bool // it has a memory that others may have, too, after both
	}{
		{"the same proof", []string{soap, basic}, []string{soap, basic}, false, true},
		{"the same proof, and nothing else", []string{soap, basic}, []string{basic, "Content-Length: 0"}, false, true},
		{"a second proof", []string{soap, basic}, []string{soap, wrong}, true, false},
		{"anonymous after a proof", []string{soap, basic}, []string{soap}, true, false},
		{"NTLM after a proof", []string{soap, basic}, []string{soap, "Authorization: NTLM TlRMTVNTUAAB"}, true, false},
		{"what a page could send", []string{soap, basic}, []string{"GET", basic}, true, false},
		{"a page", []string{soap, basic}, []string{soap, basic, page}, true, false},
		{"forwarded", []string{soap, basic}, []string{soap, basic, via}, true, false},
		{"a proof after anonymous", []string{soap}, []string{soap, basic}, false, false},
		{"Digest after anonymous", []string{soap}, []string{soap, "Authorization: Digest a"}, false, false},
		{"anonymous after anonymous", []string{soap}, []string{"GET"}, false, false},
		{"a page after anonymous", []string{soap}, []string{soap, page}, true, false},
		{"forwarded after anonymous", []string{soap}, []string{soap, via}, true, false},
		{"anonymous after a proof that does not share", []string{"GET", basic}, []string{"GET"}, true, false},
		{"a second proof that does not share", []string{"GET", basic}, []string{"GET", wrong}, true, false},
		{"the same that does not share", []string{"GET", basic}, []string{soap, basic}, false, false},
		{"another page", []string{soap, page}, []string{soap, "Origin: http://other.example"}, true, false},
		{"the same page", []string{soap, page}, []string{soap, page}, false, false},
		{"another one of the same site", []string{"GET", "Referer: http://page.example/a"},
			[]string{"GET", "Referer: http://page.example/b"}, false, false},
		{"forwarded, with one proof", forwarded, forwarded, false, false},
		{"forwarded, of another one", forwarded, []string{soap, basic, "X-Forwarded-For: 198.51.100.8"}, true, false},
		{"forwarded, without proof", []string{soap, via}, []string{soap, via}, true, false},
		{"anonymous after forwarded", []string{soap, via}, []string{soap}, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := registry(principal.ByProof)
			var c principal.Client
			require.False(t, c.Next(r.Judge(device, head(t, tt.before...), true, start)))
			shared := c.Key
			assert.Equal(t, tt.forgets, c.Next(r.Judge(device, head(t, tt.after...), false, start)))
			if tt.shares {
				assert.Equal(t, shared, c.Key)
			}
			assert.Equal(t, tt.shares, c.Key.IsShared())

			// What a connection did not have in common with others it never has.
			var single principal.Client
			single.Next(principal.Verdict{})
			single.Next(registry(principal.ByProof).Judge(device, head(t, soap, basic), false, start))
			assert.False(t, single.Key.IsShared())
		})
	}
	t.Run("devices of an address", func(t *testing.T) {
		r := registry(principal.ByAddress)
		var c principal.Client
		for _, fields := range [][]string{{soap}, {soap, basic}, {soap, wrong}, {soap, via}, {"Content-Length: 0"}} {
			assert.False(t, c.Next(r.Judge(device, head(t, fields...), false, start)), fields)
			assert.True(t, c.Key.IsShared(), fields)
		}
		assert.True(t, c.Next(r.Judge(device, head(t, "GET"), false, start)), "what a page could send")
		assert.False(t, c.Key.IsShared())
	})
}

// An address that shows a second proof has no memory that outlives a connection, until it has shown
// only one for an hour; what others have is theirs.
func TestSecondProofOfAnAddress(t *testing.T) {
	r := registry(principal.ByProof)
	judge := func(from principal.Peer, after time.Duration, fields ...string) principal.Verdict {
		return r.Judge(from, head(t, append(fields, soap)...), true, start.Add(after))
	}
	first := judge(device, 0, basic)
	elsewhere := judge(other, 0, basic)
	require.True(t, first.Key.IsShared())
	assert.False(t, judge(device, time.Minute).Emptied, "an anonymous one is no second proof")
	assert.True(t, r.Keeps(first.Key, start.Add(time.Minute)))
	assert.Equal(t, first.Key, judge(device, time.Minute, basic).Key)

	second := judge(device, 2*time.Minute, wrong)
	assert.True(t, second.Emptied)
	assert.False(t, second.Key.IsShared())
	assert.False(t, r.Keeps(first.Key, start.Add(2*time.Minute)))
	assert.True(t, r.Keeps(elsewhere.Key, start.Add(2*time.Minute)))
	assert.Equal(t, elsewhere.Key, judge(other, 2*time.Minute, basic).Key)

	again := judge(device, 3*time.Minute, basic)
	assert.True(t, again.Emptied, "now that is the second one")
	for minutes := 4; minutes < 63; minutes++ {
		v := judge(device, time.Duration(minutes)*time.Minute, basic)
		require.False(t, v.Emptied || v.Key.IsShared(), "minute %d", minutes)
	}
	assert.True(t, judge(device, 63*time.Minute, basic).Key.IsShared(), "an hour with one proof")
}

// A client whose server gives it a cookie, or asks for its certificate, shows no second proof; one
// that shows nothing of the first one does.
func TestProofsOfOneClient(t *testing.T) {
	for _, tt := range []struct {
		name   string
		from   [2]principal.Peer
		shown  [2][]string
		second bool
	}{
		{"a cookie comes", [2]principal.Peer{device, device}, [2][]string{{basic}, {basic, cookie}}, false},
		{"a cookie goes", [2]principal.Peer{device, device}, [2][]string{{basic, cookie}, {basic}}, false},
		{"the cookie changes", [2]principal.Peer{device, device},
			[2][]string{{basic, cookie}, {basic, "Cookie: id=a0123456789abcdef"}}, true},
		{"a cookie alone", [2]principal.Peer{device, device}, [2][]string{{basic}, {cookie}}, true},
		{"a certificate comes", [2]principal.Peer{device, owner}, [2][]string{{basic}, {basic}}, false},
		{"another password", [2]principal.Peer{owner, owner}, [2][]string{{basic}, {wrong}}, true},
		{"by a page", [2]principal.Peer{device, device},
			[2][]string{{basic}, {bearer, "Origin: http://page.example"}}, true},
		{"by others, forwarded", [2]principal.Peer{device, device}, [2][]string{{basic}, {wrong, "Via: 1.1 g"}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := registry(principal.ByProof)
			require.False(t, r.Judge(tt.from[0], head(t, append(tt.shown[0], soap)...), true, start).Emptied)
			assert.Equal(t, tt.second, r.Judge(tt.from[1], head(t, append(tt.shown[1], soap)...), true, start).Emptied)
		})
	}
}

// What an address showed is forgotten after an hour without requests, and when others are more.
func TestAddressesAreForgotten(t *testing.T) {
	r := registry(principal.ByProof)
	judge := func(from netip.Addr, after time.Duration, field string) principal.Verdict {
		return r.Judge(principal.Peer{Addr: from}, head(t, soap, field), true, start.Add(after))
	}
	first := judge(device.Addr, 0, basic)
	assert.False(t, judge(device.Addr, principal.Lifetime, wrong).Emptied, "after an hour")
	assert.True(t, judge(device.Addr, principal.Lifetime, basic).Emptied)

	r = registry(principal.ByProof)
	judge(device.Addr, 0, basic)
	addr := netip.MustParseAddr("2001:db8::1")
	for range principal.MaxAddresses - 1 {
		judge(addr, 0, bearer)
		addr = addr.Next()
	}
	assert.True(t, r.Keeps(first.Key, start))
	judge(addr, 0, bearer)
	assert.False(t, r.Keeps(first.Key, start), "one more")
}

// The address of many connections without proof is proposed once to be taken for a client; nothing
// is proposed where that would change nothing.
func TestManyConnectionsAreSeen(t *testing.T) {
	proposed := func(mode principal.Mode, fields ...string) (at []int) {
		r := registry(mode)
		for i := range 2 * principal.Manifold {
			r.Judge(other, head(t, fields...), false, start)
			if r.Judge(device, head(t, fields...), true, start).Proposes {
				at = append(at, i+1)
			}
			if r.Judge(other, head(t, fields...), i < principal.Manifold+9, start).Proposes {
				at = append(at, -i-1)
			}
		}
		return at
	}
	assert.Equal(t, []int{principal.Manifold}, proposed(principal.ByProof, soap))
	assert.Equal(t, []int{principal.Manifold}, proposed(principal.ByProof, soap, "Authorization: Digest a"))
	assert.Equal(t, []int{principal.Manifold}, proposed(principal.ByProof, soap, "Authorization: Digest a", cookie))
	assert.Empty(t, proposed(principal.ByProof, soap, basic))
	assert.Empty(t, proposed(principal.ByProof, "GET"))
	assert.Empty(t, proposed(principal.ByProof, soap, "Via: 1.1 gate"))
	assert.Empty(t, proposed(principal.ByAddress, soap))
	assert.Empty(t, proposed(principal.ByConnection, soap))
}

// A client whose cookie is another one with each request has a memory of its own, which begins anew
// each time, over one connection or many; nothing is kept for it that grows.
func TestCookiesThatRotate(t *testing.T) {
	r := registry(principal.ByProof)
	var kept principal.Client
	rotated := func(i int) principal.Verdict {
		return r.Judge(device, head(t, soap, fmt.Sprintf("Cookie: session=%032d", i)), i%2 == 0, start)
	}
	require.False(t, kept.Next(rotated(0)))
	first := kept.Key
	require.True(t, first.IsShared())
	for i := range 2 * principal.MaxAddresses {
		v := rotated(i + 1)
		assert.True(t, v.Emptied, "what was remembered for the address is dropped")
		assert.False(t, v.Key.IsShared())
		assert.True(t, kept.Next(v), "nothing that was said before is used")
		var single principal.Client
		require.False(t, single.Next(v))
		assert.False(t, single.Key.IsShared())
	}
	assert.False(t, r.Keeps(first, start))
	assert.True(t, r.Judge(other, head(t, soap, basic), true, start).Key.IsShared(), "others are not concerned")
	again := start.Add(principal.Lifetime)
	assert.False(t, r.Judge(device, head(t, soap, fmt.Sprintf("Cookie: session=%032d", 1)), true, again).Emptied,
		"it is a new address after an hour")
}
