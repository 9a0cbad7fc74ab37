package tlsrecord_test

import (
	"bytes"
	"crypto/tls"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/tlsrecord"
)

// TestSuites: of each version and cipher suite that this library speaks, what was sent is
// decrypted, however the bytes are cut into packets.
func TestSuites(t *testing.T) {
	long := strings.Repeat("a long text. ", 4000)
	texts := []string{"first", "second", long, "last"}
	for name, tc := range map[string]struct {
		version uint16
		suites  []uint16
	}{
		"1.3":                  {version: tls.VersionTLS13},
		"1.2 AES-128-GCM":      {tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}},
		"1.2 AES-256-GCM":      {tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384}},
		"1.2 ChaCha20":         {tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256}},
		"1.2 AES-128-CBC":      {tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA}},
		"1.2 AES-256-CBC":      {tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA}},
		"1.2 AES-128-CBC SHA2": {tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256}},
	} {
		t.Run(name, func(t *testing.T) {
			client, server, keys := ends(t)
			client.MinVersion, client.MaxVersion, client.CipherSuites = tc.version, tc.version, tc.suites
			server.CipherSuites = tc.suites
			client.NextProtos, server.NextProtos = []string{"hhfr/1", "http/1.1"}, []string{"http/1.1"}
			events := converse(t, client, server, texts...)
			for _, most := range []int{1, 7, 1448, 1 << 20} {
				f := follow(t, logOf(keys.Bytes()), split(events, most), nil)
				assert.True(t, f.said(0) == strings.Join(texts, ""), "packets of %d bytes", most)
				assert.True(t, f.said(1) == strings.ToUpper(strings.Join(texts, "")), "packets of %d bytes", most)
				assert.Zero(t, f.Why())
				assert.True(t, f.Decrypted())
				assert.Equal(t, []string{"hhfr/1", "http/1.1"}, f.Offered())
				assert.Equal(t, "http/1.1", f.Protocol())
				for i, c := range f.chunks[:min(4, len(f.chunks))] {
					assert.Equal(t, i%2, c.dir, "no answer comes before its question")
				}
			}
		})
	}
}

// TestOtherEndsKeys: whether the client or the server has written them does not matter.
func TestOtherEndsKeys(t *testing.T) {
	client, server, keys := ends(t)
	client.KeyLogWriter, server.KeyLogWriter = nil, keys
	events := converse(t, client, server, "text")
	assert.Equal(t, "text", follow(t, logOf(keys.Bytes()), events, nil).said(0))
}

// TestResumed: a session that a later connection resumes, with one log or one for each.
func TestResumed(t *testing.T) {
	for version, name := range map[uint16]string{tls.VersionTLS12: "1.2", tls.VersionTLS13: "1.3"} {
		client, server, keys := ends(t)
		client.MaxVersion, client.ClientSessionCache = version, tls.NewLRUClientSessionCache(1)
		first := converse(t, client, server, "first")
		second := converse(t, client, server, "second")
		log := logOf(keys.Bytes())
		assert.Equal(t, "first", follow(t, log, first, nil).said(0), name)
		f := follow(t, log, second, nil)
		assert.Equal(t, "second", f.said(0), name)
		assert.Equal(t, "SECOND", f.said(1), name)
	}
}

// TestWithoutKeys: what is not decrypted has a reason.
func TestWithoutKeys(t *testing.T) {
	client, server, keys := ends(t)
	events := converse(t, client, server, "text", strings.Repeat("much", 100000))
	other, _, others := ends(t)
	other.InsecureSkipVerify = true
	converse(t, other, server, "other")

	f := follow(t, new(tlsrecord.KeyLog), events, nil)
	assert.Equal(t, tlsrecord.NoKeys, f.Why())
	f = follow(t, logOf(others.Bytes()), events[:len(events)/2], nil)
	assert.Equal(t, tlsrecord.NoKeys, f.Why())
	assert.Empty(t, f.chunks)

	wrong := bytes.Clone(keys.Bytes())
	for line := range bytes.Lines(wrong) {
		copy(line[bytes.LastIndexByte(line, ' ')+1:], "000000000000")
	}
	f = follow(t, logOf(wrong), events, nil)
	assert.Equal(t, tlsrecord.Damaged, f.Why())
	assert.False(t, f.Decrypted())

	f = follow(t, logOf(keys.Bytes()), events[2:], map[int]int64{0: -1})
	assert.Equal(t, tlsrecord.Joined, f.Why())
	f = follow(t, logOf(keys.Bytes()), []event{events[0], {1, []byte("HTTP/1.1 200 OK")}}, nil)
	assert.Equal(t, tlsrecord.Damaged, f.Why())
}

// TestLateKeys: records wait for keys that are logged later than they are used.
func TestLateKeys(t *testing.T) {
	client, server, keys := ends(t)
	events := converse(t, client, server, "one", "two")
	late := new(tlsrecord.KeyLog)
	var written bytes.Buffer
	late.Follow(&written)
	f := follow(t, late, events[:len(events)-1], nil)
	assert.Empty(t, f.chunks)
	assert.Equal(t, tlsrecord.NoKeys, f.Why())
	half := keys.Len() - 10
	written.Write(keys.Bytes()[:half])
	written.Write(keys.Bytes()[half:])
	last := len(events) - 1
	require.NoError(t, f.Write(events[last].dir, 0, events[last].b, last))
	assert.Equal(t, "onetwo", f.said(0))
	assert.Equal(t, "ONETWO", f.said(1))
	assert.Zero(t, f.Why())
	for _, c := range f.chunks {
		assert.Less(t, c.event, last, "the packet that brought it")
	}
}

// TestMissingPackets: with any packet missing after the handshake, what is decrypted is right, what
// is missing is marked, and what follows is decrypted again.
func TestMissingPackets(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		client, server, keys := ends(t)
		client.MaxVersion = version
		var texts []string
		for i := range 40 {
			text := strings.Repeat(string(rune('a'+i%26)), 10+i*i)
			texts = append(texts, text)
		}
		texts = append(texts, "the end")
		packets := split(converse(t, client, server, texts...), 700)
		log := logOf(keys.Bytes())
		all := strings.Join(texts, "")
		for missing := 20; missing < len(packets)-6; missing++ {
			gone := packets[missing]
			rest := append(append([]event(nil), packets[:missing]...), packets[missing+1:]...)
			next := missing
			for next < len(rest) && rest[next].dir != gone.dir {
				next++
			}
			f := follow(t, log, rest, map[int]int64{next: int64(len(gone.b))})
			said, whole := f.said(gone.dir), all
			if gone.dir == 1 {
				whole = strings.ToUpper(all)
			}
			before, after, found := strings.Cut(said, "|")
			require.True(t, strings.HasPrefix(whole, before) && strings.HasSuffix(whole, after), "packet %d", missing)
			require.True(t, found || said == whole, "packet %d", missing)
			assert.LessOrEqual(t, len(whole)-len(said), 2*1<<14, "packet %d", missing)
			assert.Zero(t, f.Why())
		}
	}
}

// TestManyMissing: one packet in a hundred.
func TestManyMissing(t *testing.T) {
	client, server, keys := ends(t)
	var texts []string
	for i := range 400 {
		texts = append(texts, strings.Repeat("some text that is sent ", 1+i%90))
	}
	packets := split(converse(t, client, server, texts...), 1448)
	rnd := rand.New(rand.NewPCG(1, 2))
	var rest []event
	gaps, since := map[int]int64{}, [2]int64{}
	lost := 0
	for i, p := range packets {
		if i > 20 && rnd.IntN(100) == 0 {
			since[p.dir] += int64(len(p.b))
			lost++
			continue
		}
		gaps[len(rest)], since[p.dir] = since[p.dir], 0
		rest = append(rest, p)
	}
	f := follow(t, logOf(keys.Bytes()), rest, gaps)
	whole := strings.Join(texts, "")
	got := 0
	for part := range strings.SplitSeq(f.said(0), "|") {
		assert.Contains(t, whole, part)
		got += len(part)
	}
	assert.Positive(t, lost)
	assert.Greater(t, got, len(whole)*9/10, "%d of %d bytes, without %d packets", got, len(whole), lost)
	assert.Zero(t, f.Why())
}

// TestKeyLogs: lines that are none are passed over; a log that grows is read on.
func TestKeyLogs(t *testing.T) {
	random, secret := strings.Repeat("0a", 32), strings.Repeat("1b", 48)
	for line, want := range map[string]int{
		"":                                0,
		"# a comment":                     0,
		"CLIENT_RANDOM " + random:         0,
		"CLIENT_RANDOM " + random + " xx": 0,
		"CLIENT_RANDOM " + random + " 1b": 0,
		"CLIENT_RANDOM " + random[2:] + " " + secret:        0,
		"CLIENT_RANDOM " + random + " " + secret:            1,
		"EXPORTER_SECRET " + random + " " + secret:          1,
		"  CLIENT_RANDOM\t" + random + "  " + secret + "\r": 1,
	} {
		k := new(tlsrecord.KeyLog)
		assert.Equal(t, want, k.Add([]byte("\n"+line+"\n\n")), line)
		assert.Equal(t, want, k.Add([]byte(line)), line)
		assert.LessOrEqual(t, k.Len(), 1, line)
	}
}

// FuzzFollower: whatever comes, nothing is passed on that was not sealed, and nothing breaks.
func FuzzFollower(f *testing.F) {
	client, server, keys := ends(f)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		client.MaxVersion = version
		var all []byte
		for _, e := range converse(f, client, server, "some", "texts") {
			all = append(all, byte(e.dir), byte(len(e.b)>>8), byte(len(e.b)))
			all = append(all, e.b...)
		}
		f.Add(all, keys.Bytes())
		f.Add(all[:len(all)/2], keys.Bytes())
		f.Add(all, []byte(nil))
	}
	f.Fuzz(func(t *testing.T, in, log []byte) {
		passed := 0
		c := tlsrecord.NewFollower(logOf(log), func(_ int, gap int64, b []byte, _ int) error {
			if passed += len(b); gap < -1 {
				t.Fatalf("a gap of %d", gap)
			}
			return nil
		})
		for i := 0; len(in) >= 3; i++ {
			n := min(int(in[1])<<8|int(in[2]), len(in)-3)
			if err := c.Write(int(in[0]&1), int64(in[0]>>1), in[3:3+n], i); err != nil {
				t.Fatal(err)
			}
			in = in[3+n:]
		}
		_ = c.Why()
	})
}
