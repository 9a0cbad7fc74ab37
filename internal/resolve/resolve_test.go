package resolve_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/internal/resolve"
	"github.com/hhfr/hhfr/internal/resolve/resolvetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// phone is a system like Android's: with a resolver that knows hosts, if there are any.
func phone(t *testing.T, answer func(command string, conn net.Conn)) resolve.System {
	t.Helper()
	dir := t.TempDir()
	s := resolve.System{
		GOOS: "android", Properties: filepath.Join(dir, "properties"), Socket: filepath.Join(dir, "dnsproxyd"),
		ResolvConf: filepath.Join(dir, "resolv.conf"), Prefix: filepath.Join(dir, "usr"),
	}
	require.NoError(t, os.Mkdir(s.Properties, 0o700))
	if answer != nil {
		stop, err := resolvetest.Android(s.Socket, answer)
		require.NoError(t, err)
		t.Cleanup(stop)
	}
	return s
}

// termux gives a phone a resolv.conf of Termux, and a DNS server for each of its addresses.
func termux(t *testing.T, s *resolve.System, text string, servers map[string]netip.AddrPort) (asked func() []string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(s.Prefix, "etc"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(s.Prefix, "etc", "resolv.conf"), []byte(text), 0o600))
	var lock sync.Mutex
	var list []string
	s.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		lock.Lock()
		list = append(list, addr)
		lock.Unlock()
		server, ok := servers[addr]
		if !ok {
			return nil, fmt.Errorf("no way to %s", addr)
		}
		return new(net.Dialer).DialContext(ctx, network, server.String())
	}
	return func() []string {
		lock.Lock()
		defer lock.Unlock()
		return slices.Compact(slices.Sorted(slices.Values(list)))
	}
}

func dns(t *testing.T, hosts map[string]string) netip.AddrPort {
	t.Helper()
	server, stop, err := resolvetest.DNS(hosts)
	require.NoError(t, err)
	t.Cleanup(stop)
	return server
}

// garbage is an Android resolver with another protocol.
func garbage(_ string, conn net.Conn) { _, _ = io.WriteString(conn, "500 Command not recognized\x00") }

func lookup(t *testing.T, s resolve.System, network, host string) ([]string, error) {
	t.Helper()
	r := s.Resolver(netip.AddrPort{})
	require.NotNil(t, r)
	addrs, err := r.LookupNetIP(t.Context(), network, host)
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	return texts(addrs), err
}

func TestAndroid(t *testing.T) {
	s := phone(t, resolvetest.Hosts(map[string][]string{
		"camera.test": {"192.0.2.7", "2001:db8::7", "192.0.2.8"},
		"old.test":    {"192.0.2.9"},
		"new.test":    {"2001:db8::9"},
		"camera":      {"192.0.2.10"},
	}))
	for _, tc := range []struct {
		network, host string
		want          []string
	}{
		{"ip", "camera.test", []string{"192.0.2.7", "192.0.2.8", "2001:db8::7"}},
		{"ip4", "camera.test", []string{"192.0.2.7", "192.0.2.8"}},
		{"ip6", "camera.test", []string{"2001:db8::7"}},
		{"ip", "camera.test.", []string{"192.0.2.7", "192.0.2.8", "2001:db8::7"}},
		{"ip", "old.test", []string{"192.0.2.9"}},
		{"ip", "new.test", []string{"2001:db8::9"}},
		{"ip", "camera", []string{"192.0.2.10"}},
		{"ip", "192.0.2.44", []string{"192.0.2.44"}},
	} {
		addrs, err := lookup(t, s, tc.network, tc.host)
		require.NoError(t, err, "%+v", tc)
		assert.ElementsMatch(t, tc.want, addrs, "%+v", tc)
	}
	var failed *net.DNSError
	for _, host := range []string{"nobody.test", "a b", strings.Repeat("x", 300)} {
		_, err := lookup(t, s, "ip", host)
		require.ErrorAs(t, err, &failed, host)
		assert.True(t, failed.IsNotFound, host)
	}
	_, err := s.Resolver(netip.AddrPort{}).LookupTXT(t.Context(), "camera.test")
	require.ErrorContains(t, err, "server misbehaving", "other questions than for addresses have no answer, and end")
}

// Many addresses fit the substitute for a DNS message, even with the longest name.
func TestManyAddresses(t *testing.T) {
	host := strings.Repeat(strings.Repeat("n", 60)+".", 4) + "test"
	var many []string
	for n := range resolve.MaxAddresses {
		many = append(many, fmt.Sprintf("2001:db8::%x", n+1))
	}
	addrs, err := lookup(t, phone(t, resolvetest.Hosts(map[string][]string{host: many})), "ip6", host)
	require.NoError(t, err)
	assert.ElementsMatch(t, many, addrs)
}

// The answer of Android's resolver is final: other servers are not asked for what it does not find,
// or cannot find now.
func TestAnswersOfAndroidStand(t *testing.T) {
	servers := map[string]netip.AddrPort{"8.8.8.8:53": dns(t, map[string]string{"camera.test": "192.0.2.66"})}
	for says, answer := range map[string][]byte{
		"no such host":  resolvetest.Failed(resolvetest.NoData),
		"EAI_AGAIN (2)": resolvetest.Failed(resolvetest.Again),
		"EAI_FAIL (4)":  resolvetest.Failed(4),
	} {
		s := phone(t, func(_ string, conn net.Conn) { _, _ = conn.Write(answer) })
		asked := termux(t, &s, "nameserver 8.8.8.8\n", servers)
		addrs, err := lookup(t, s, "ip", "camera.test")
		require.ErrorContains(t, err, says)
		assert.Empty(t, addrs)
		assert.Empty(t, asked())
	}
}

// If Android's resolver cannot be asked, or answers wrongly, Termux's servers are asked.
func TestTermux(t *testing.T) {
	known := dns(t, map[string]string{"camera.test": "192.0.2.7"})
	endless := func(_ string, conn net.Conn) {
		b := resolvetest.Entry([]byte("222\x00"), 2, make([]byte, 16), "")
		for _, err := conn.Write(b); err == nil; _, err = conn.Write(b[4:]) {
		}
	}
	for name, tc := range map[string]struct {
		answer func(string, net.Conn)
		text   string
		asked  []string
	}{
		"no socket":      {nil, "nameserver 8.8.8.8\n", []string{"8.8.8.8:53"}},
		"other language": {garbage, "nameserver 8.8.8.8\n", []string{"8.8.8.8:53"}},
		"closed at once": {func(string, net.Conn) {}, "nameserver 8.8.8.8\n", []string{"8.8.8.8:53"}},
		"endless":        {endless, "nameserver 8.8.8.8\n", []string{"8.8.8.8:53"}},
		"the first is gone": {nil, "nameserver 192.0.2.53\nnameserver 8.8.8.8\n",
			[]string{"192.0.2.53:53", "8.8.8.8:53"}},
		"what a line may be": {
			nil, "# nameserver 192.0.2.1\n;\noptions x\nnameserver\nnameserver a.b\n nameserver\t8.8.8.8 # mine",
			[]string{"8.8.8.8:53"},
		},
		"IPv6": {nil, "nameserver 2001:db8::53\n", []string{"[2001:db8::53]:53"}},
		"more than three": {
			nil, "nameserver ::1\nnameserver ::2\nnameserver 8.8.8.8\nnameserver ::4\n",
			[]string{"8.8.8.8:53", "[::1]:53", "[::2]:53"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := phone(t, tc.answer)
			asked := termux(t, &s, tc.text, map[string]netip.AddrPort{"8.8.8.8:53": known, "[2001:db8::53]:53": known})
			addrs, err := lookup(t, s, "ip", "camera.test")
			require.NoError(t, err)
			assert.Equal(t, []string{"192.0.2.7"}, addrs)
			assert.Equal(t, tc.asked, asked())
			var failed *net.DNSError
			_, err = lookup(t, s, "ip", "nobody.test")
			require.ErrorAs(t, err, &failed)
			assert.True(t, failed.IsNotFound)
		})
	}
}

// The error of a lookup without answer lists all that were tried, and why each failed.
func TestNobodyAnswers(t *testing.T) {
	denied := phone(t, nil)
	l, err := net.Listen("unix", denied.Socket)
	require.NoError(t, err)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	noLines := phone(t, garbage)
	termux(t, &noLines, "# none\n", nil)
	unreachable := phone(t, nil)
	termux(t, &unreachable, "nameserver 192.0.2.53\nnameserver 192.0.2.54\n", nil)
	bare := phone(t, nil)
	bare.Prefix = ""
	folder := phone(t, nil)
	require.NoError(t, os.MkdirAll(filepath.Join(folder.Prefix, "etc", "resolv.conf"), 0o700))
	for name, tc := range map[string]struct {
		system resolve.System
		says   []string
	}{
		"nothing": {phone(t, nil),
			[]string{"dnsproxyd: connect: no such file", "usr/etc/resolv.conf: no such file"}},
		"nobody listens": {denied, []string{"dnsproxyd: connect: connection refused",
			"usr/etc/resolv.conf: no such file"}},
		"no servers": {noLines, []string{`dnsproxyd): it answers "500 Command`,
			"resolv.conf: no line nameserver ADDRESS"}},
		"no way": {unreachable, []string{
			"dnsproxyd: connect: no such file", "192.0.2.53:53 (", "resolv.conf): no way to 192.0.2.53:53",
			"; 192.0.2.54:53 (",
		}},
		"not Termux": {bare, []string{"dnsproxyd: connect: no such file",
			"no $PREFIX/etc/resolv.conf: PREFIX is not set"}},
		"a folder": {folder, []string{"usr/etc/resolv.conf: read", "is a directory"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := lookup(t, tc.system, "ip", "camera.test")
			require.ErrorContains(t, err, "lookup camera.test")
			text := tc.system.Message(err, netip.AddrPort{})
			assert.Contains(t, text, "lookup camera.test: no resolver answers: ")
			for _, says := range tc.says {
				assert.Contains(t, text, says)
			}
			assert.NotContains(t, text, "127.0.0.1")
			assert.NotContains(t, text, "\n")
		})
	}
}

// The lookup waits for a silent resolver as long as there is time; then it is the error.
func TestAndroidIsSilent(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := phone(t, func(_ string, conn net.Conn) {
		cancel()
		_, _ = conn.Read(make([]byte, 1)) // until it is abandoned
	})
	_, err := resolve.Lookup(s, ctx, "ip4", "camera.test")
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "no answer")
	assert.NotContains(t, err.Error(), "resolv.conf", "there was no time left to ask others")
}

// A named server is asked alone, on every system.
func TestServerIsNamed(t *testing.T) {
	server := dns(t, map[string]string{"camera.test": "192.0.2.7"})
	android := phone(t, resolvetest.Hosts(map[string][]string{
		"camera.test": {"192.0.2.66"}, "other.test": {"192.0.2.66"},
	}))
	for name, s := range map[string]resolve.System{"android": android, "none": {}, "this": resolve.Local("")} {
		r := s.Resolver(server)
		addrs, err := r.LookupNetIP(t.Context(), "ip4", "camera.test")
		require.NoError(t, err, name)
		assert.Equal(t, []string{"192.0.2.7"}, texts(addrs), name)
		_, err = r.LookupNetIP(t.Context(), "ip4", "other.test")
		require.ErrorContains(t, err, "no such host", name)
		err = fmt.Errorf("dial: %w", err)
		assert.Equal(t, "dial: lookup other.test on "+server.String()+": no such host", s.Message(err, server), name)
	}
}

func TestMessage(t *testing.T) {
	failed := fmt.Errorf("dial: %w", &net.DNSError{Err: "no such host", Name: "a", Server: "127.0.0.1:53"})
	s := phone(t, nil)
	assert.Equal(t, "dial: lookup a: no such host", s.Message(failed, netip.AddrPort{}))
	assert.Equal(t, "dial: lookup a on [::1]:54: no such host", s.Message(failed, netip.MustParseAddrPort("[::1]:54")))
	assert.Equal(t, failed.Error(), resolve.System{}.Message(failed, netip.AddrPort{}), "there net asked it")
	other := errors.New("lookup a on 127.0.0.1:53: x")
	assert.Equal(t, other.Error(), s.Message(other, netip.AddrPort{}))
}

// Package net is left unchanged wherever it finds a resolver.
func TestWhereNetCopes(t *testing.T) {
	android := phone(t, nil)
	change := func(f func(*resolve.System)) resolve.System {
		s := android
		f(&s)
		return s
	}
	file := filepath.Join(t.TempDir(), "resolv.conf")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for name, tc := range map[string]struct {
		system          resolve.System
		android, needed bool
	}{
		"android":                    {android, true, true},
		"android with cgo":           {change(func(s *resolve.System) { s.Cgo = true }), true, false},
		"android with a resolv.conf": {change(func(s *resolve.System) { s.ResolvConf = file }), true, true},
		"linux on a phone":           {change(func(s *resolve.System) { s.GOOS = "linux" }), true, true},
		"linux in proot": {change(func(s *resolve.System) {
			s.GOOS, s.ResolvConf = "linux", file
		}), true, false},
		"linux": {change(func(s *resolve.System) {
			s.GOOS, s.Properties = "linux", "/none"
		}), false, false},
		"windows":          {change(func(s *resolve.System) { s.GOOS = "windows" }), false, false},
		"nothing is known": {resolve.System{}, false, false},
		"linux without a resolv.conf": {change(func(s *resolve.System) {
			s.GOOS, s.Properties = "linux", ""
		}), false, false},
	} {
		assert.Equal(t, tc.android, tc.system.Android(), name)
		assert.Equal(t, tc.needed, tc.system.Resolver(netip.AddrPort{}) != nil, name)
	}
	if runtime.GOOS != "android" {
		assert.Nil(t, resolve.Local("/usr").Resolver(netip.AddrPort{}))
	}
}
