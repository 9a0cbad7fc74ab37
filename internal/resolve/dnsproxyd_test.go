package resolve_test

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/resolve"
	"github.com/hhfr/hhfr/internal/resolve/resolvetest"
)

func TestGetaddrinfo(t *testing.T) {
	for network, want := range map[string]string{
		"ip4": "getaddrinfo camera-1.example ^ 0 2 1 0 0\x00",
		"ip6": "getaddrinfo camera-1.example ^ 0 10 1 0 0\x00",
	} {
		command, err := resolve.Getaddrinfo(network, "camera-1.example")
		require.NoError(t, err)
		assert.Equal(t, want, string(command))
	}
	for _, host := range []string{"", "a b", "a\x00b", "^", "a'", `a"b`, `a\b`, "a\nb", "ä.example"} {
		_, err := resolve.Getaddrinfo("ip4", host)
		assert.ErrorContains(t, err, "is no host name", "%q", host)
	}
}

// spelled is an answer byte by byte, as SocketClient::sendCode and sendaddrinfo write it on a
// little-endian processor, which all of Android's are.
const spelled = "222\x00" +
	"\x00\x00\x00\x01" + // one more
	// flags, AF_INET, SOCK_STREAM, TCP
	"\x00\x00\x00\x00" + "\x00\x00\x00\x02" + "\x00\x00\x00\x01" + "\x00\x00\x00\x06" +
	"\x00\x00\x00\x10" + "\x02\x00\x00\x00\xc0\x00\x02\x07\x00\x00\x00\x00\x00\x00\x00\x00" + // sockaddr_in
	"\x00\x00\x00\x07" + "camera\x00" + // canonical name
	"\x00\x00\x00\x01" +
	"\x00\x00\x00\x00" + "\x00\x00\x00\x0a" + "\x00\x00\x00\x01" + "\x00\x00\x00\x06" + // AF_INET6
	"\x00\x00\x00\x1c" + "\x0a\x00\x00\x00\x00\x00\x00\x00" + // sockaddr_in6
	"\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07" + "\x00\x00\x00\x00" +
	"\x00\x00\x00\x00" + // no canonical name
	"\x00\x00\x00\x00" // no more

func TestReadAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		answer []byte
		want   string
	}{
		"spelled out": {[]byte(spelled), "192.0.2.7 2001:db8::7"},
		"none":        {resolvetest.Found(), ""},
		"several":     {resolvetest.Found("192.0.2.2", "192.0.2.1", "::1"), "192.0.2.2 192.0.2.1 ::1"},
		"each once":   {resolvetest.Found("192.0.2.1", "192.0.2.1"), "192.0.2.1"},
		"other family": {
			binary.BigEndian.AppendUint32(resolvetest.Entry([]byte("222\x00"), 16, []byte{16, 0}, ""), 0), "",
		},
		"no such name":     {resolvetest.Failed(8), ""},
		"no such address":  {resolvetest.Failed(resolvetest.NoData), ""},
		"more than needed": {append(resolvetest.Found("192.0.2.1"), "and so on"...), "192.0.2.1"},
	} {
		addrs, err := resolve.ReadAnswer(bytes.NewReader(tc.answer))
		require.NoError(t, err, name)
		var words []string
		for _, addr := range addrs {
			words = append(words, addr.String())
		}
		assert.Equal(t, tc.want, strings.Join(words, " "), name)
	}
}

// Every cut of an answer is an error that says where it ends.
func TestAnswersCutAnywhere(t *testing.T) {
	for _, answer := range []string{spelled, string(resolvetest.Failed(resolvetest.Again))} {
		for n := range len(answer) {
			addrs, err := resolve.ReadAnswer(strings.NewReader(answer[:n]))
			assert.ErrorContains(t, err, "its answer ends in the ", "%d", n)
			assert.Empty(t, addrs, "%d", n)
		}
	}
}

func TestHostileAnswers(t *testing.T) {
	sockaddr := make([]byte, 16)
	entry := func(family uint32, sockaddr []byte, canonical string) string {
		return string(resolvetest.Entry([]byte("222\x00"), family, sockaddr, canonical))
	}
	one := string(resolvetest.Entry(nil, 2, sockaddr, ""))
	failed := func(code int32) string { return string(resolvetest.Failed(code)) }
	for name, tc := range map[string]struct {
		answer string
		says   string
	}{
		"again":             {failed(resolvetest.Again), "the resolver of Android says: EAI_AGAIN (2)"},
		"timeout":           {failed(255), "says: timeout (255)"},
		"negative":          {failed(-1), "says: unknown error (-1)"},
		"long failure":      {"401\x00\x00\x00\x00\x05\x01\x01\x01\x01\x01", "error code of 5 bytes, more than 4"},
		"short failure":     {"401\x00\x00\x00\x00\x00", "an error code of 0 bytes, not 4"},
		"unknown command":   {"500 Command not recognized\x00", `it answers "500 Command not recognized"`},
		"words without end": {"501 " + strings.Repeat("x", 1<<20), `it answers "501 xxx`},
		"result in words":   {"222 ", `it answers "222 "`},
		"nothing of it":     {"HTTP/1.1 400 Bad Request\r\n", `it answers "HTTP/1.1 400`},
		"of Android 5": {"222\x00\x00\x00\x00\x20" + strings.Repeat("\x00", 32),
			"address 1 begins with 32, not 1"},
		"second mark": {entry(2, sockaddr, "") + "\xff\xff\xff\xff", "address 2 begins with 4294967295"},
		"sockaddr too long": {entry(2, make([]byte, resolve.MaxSockaddr+1), ""),
			"sockaddr of 129 bytes, more than 128"},
		"endless sockaddr": {entry(2, nil, "")[:24] + "\xff\xff\xff\xff", "sockaddr of 4294967295 bytes"},
		"short sockaddr":   {entry(2, sockaddr[:15], ""), "a sockaddr of 15 bytes is too short for family 2"},
		"short sockaddr 6": {entry(10, sockaddr, ""), "a sockaddr of 16 bytes is too short for family 10"},
		"name too long": {
			entry(2, sockaddr, strings.Repeat("n", resolve.MaxCanonical+1)),
			"canonical name of 1026 bytes, more than 1025",
		},
		"name without end":  {entry(2, sockaddr, "camera"), "the canonical name has no NUL at its end"},
		"endless addresses": {"222\x00" + strings.Repeat(one, resolve.MaxAddresses+2), "more than 1024 addresses"},
	} {
		t.Run(name, func(t *testing.T) {
			addrs, err := resolve.ReadAnswer(strings.NewReader(tc.answer))
			require.ErrorContains(t, err, tc.says)
			assert.Less(t, len(err.Error()), 400)
			assert.Empty(t, addrs)
		})
	}
}

// FuzzReadAnswer: what is read can be written and read again, an error comes without addresses, and
// no more is read than the bounds allow.
func FuzzReadAnswer(f *testing.F) {
	f.Add([]byte(spelled))
	f.Add(resolvetest.Failed(resolvetest.Again))
	f.Add(resolvetest.Failed(resolvetest.NoData))
	f.Add(resolvetest.Found("192.0.2.1", "2001:db8::1", "192.0.2.1"))
	f.Add([]byte("500 Command not recognized\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		addrs, err := resolve.ReadAnswer(bytes.NewReader(b))
		if err != nil {
			require.Empty(t, addrs)
			return
		}
		require.LessOrEqual(t, len(addrs), resolve.MaxAddresses)
		again, err := resolve.ReadAnswer(bytes.NewReader(resolvetest.Found(texts(addrs)...)))
		require.NoError(t, err)
		require.Equal(t, addrs, again)
	})
}

func texts(addrs []netip.Addr) (list []string) {
	for _, addr := range addrs {
		list = append(list, addr.String())
	}
	return list
}
