package peer_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/internal/shared"
)

var update = flag.Bool("update", false, "write files that are made of others again")

// The list built in is the file it says it is made of.
func TestDutchRanges(t *testing.T) {
	file, err := os.Open(filepath.Join(shared.Dir(t, "corpus", "geoip"), "nl-ipv4-aggregated.txt"))
	require.NoError(t, err)
	defer file.Close()
	want, err := peer.ParseRanges(file)
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(filepath.Join("data", "nl-ipv4.bin"), want.Pack(), 0o644))
		t.Skip("written; run again without -update")
	}
	assert.True(t, bytes.Equal(want.Pack(), peer.BuiltIn()), "run with -update")
	assert.Equal(t, want, peer.DutchRanges())
	assert.Greater(t, want.Len(), 4000)
}

func TestRanges(t *testing.T) {
	r, err := peer.ParseRanges(strings.NewReader(`# a list
10.0.0.0/8
192.168.1.7          # one
172.16.0.9 - 172.16.0.20
172.16.0.15-172.16.0.21
172.16.0.22
255.255.255.255/32
255.255.255.0-255.255.255.255
0.0.0.0/32
`))
	require.NoError(t, err)
	assert.Equal(t, 5, r.Len())
	for address, in := range map[string]bool{
		"0.0.0.0": true, "0.0.0.1": false, "9.255.255.255": false, "10.0.0.0": true, "10.1.2.3": true,
		"10.255.255.255": true, "11.0.0.0": false,
		"192.168.1.6": false, "192.168.1.7": true, "192.168.1.8": false, "172.16.0.8": false, "172.16.0.9": true,
		"172.16.0.22": true, "172.16.0.23": false,
		"255.255.254.255": false, "255.255.255.0": true, "255.255.255.255": true,
	} {
		assert.Equal(t, in, r.Has(address), address)
	}
	again, err := peer.Unpack(r.Pack())
	require.NoError(t, err)
	assert.Equal(t, r, again)

	all, err := peer.ParseRanges(strings.NewReader("0.0.0.0/0\n1.2.3.4\n"))
	require.NoError(t, err)
	assert.Equal(t, 1, all.Len())
	assert.True(t, all.Has("0.0.0.0") && all.Has("255.255.255.255"))
}

func TestBadRanges(t *testing.T) {
	for _, c := range []struct{ in, says string }{
		{"", "no ranges"},
		{"# nothing\n", "no ranges"},
		{"1.2.3.4\nhello\n", "line 2"},
		{"1.2.3.4/33", "line 1"},
		{"2001:db8::/32", "no IPv4 range"},
		{"2001:db8::1", "no IPv4 range"},
		{"1.2.3.4-1.2.3.3", "no IPv4 range"},
		{"1.2.3", "no IPv4 range"},
		{strings.Repeat("9", 1<<20), "token too long"},
	} {
		_, err := peer.ParseRanges(strings.NewReader(c.in))
		require.ErrorIs(t, err, &peer.Error{Code: peer.BadRanges})
		assert.ErrorContains(t, err, c.says)
	}
	for _, packed := range []string{"\x80", "\x01", "\xff\xff\xff\xff\x0f\x01", strings.Repeat("\xff", 20)} {
		_, err := peer.Unpack([]byte(packed))
		assert.ErrorIs(t, err, &peer.Error{Code: peer.BadRanges}, "%x", packed)
	}
}

// What is read is packed and unpacked to the same.
func FuzzRanges(f *testing.F) {
	for _, s := range []string{"10.0.0.0/8\n11.0.0.0/9\n", "1.2.3.4-1.2.3.9\n#\n", "0.0.0.0/0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := peer.ParseRanges(strings.NewReader(text))
		if err != nil {
			return
		}
		again, err := peer.Unpack(r.Pack())
		require.NoError(t, err)
		assert.Equal(t, r, again)
	})
}
