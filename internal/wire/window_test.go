package wire_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shape/recall"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/wire"
)

// windowVector is one file of testdata/vectors/texts: segments of a lane that is new, and what
// they travel as one after the other.
type windowVector struct {
	What       string   `json:"what"`
	Packed     bool     `json:"packed"`
	Segment    []string `json:"segment"`
	Compressed []string `json:"compressed"`
}

// TestWindowVectors holds testdata/vectors/texts. A compressor may make other octets of the
// segments.
func TestWindowVectors(t *testing.T) {
	dir := shared.Testdata(t, "vectors", "texts")
	if *update {
		p := newPair(t, wire.EncoderConfig{}, allStages)
		v := windowVector{What: "segments of one lane, in order"}
		for _, s := range []string{order(1, "me"), order(2, "me"), order(3, "somebody else"), "\xf6 begins as a mark",
			order(4, "somebody else")} {
			v.Segment = append(v.Segment, hex.EncodeToString([]byte(s)))
			v.Compressed = append(v.Compressed, hex.EncodeToString(p.text(1, []byte(s))))
		}
		b, err := json.MarshalIndent(v, "", "  ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "orders.json"), append(b, '\n'), 0o644))
	}
	for _, path := range shared.Files(t, dir, nil) {
		var v windowVector
		require.NoError(t, json.Unmarshal(shared.Read(t, path), &v))
		var w recall.History
		for i, travels := range v.Compressed {
			b, err := hex.DecodeString(travels)
			require.NoError(t, err)
			require.NoError(t, compression.ExpandBy(&w, b, v.Packed, func(segment []byte) error {
				assert.Equal(t, v.Segment[i], hex.EncodeToString(segment))
				return nil
			}))
		}
	}
}

// inbox is a list of the items from one number on.
func inbox(from int) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0"?><s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><l>`)
	for i := from; i < from+12; i++ {
		id := sha256.Sum256([]byte{byte(i), byte(i >> 8)})
		fmt.Fprintf(&b, `<m><id>%x</id><subject>%x</subject><size>%d</size></m>`, id[:24], id[24:], i*7919%50000)
	}
	return b.String() + "</l></s:Body></s:Envelope>"
}

// A list that moves on by a row, or comes again, takes little more than what is new of it, while
// its lane sends little; what comes at once in numbers has no window.
func TestListsThatMoveOn(t *testing.T) {
	p := newPair(t, wire.EncoderConfig{}, allStages)
	by := p.learn(inbox(0))
	first := len(p.send(1, by, inbox(0))[0])
	assert.Greater(t, first, 12*32)
	p.send(1, by, inbox(0)) // the window gets it
	for i := 1; i < 20; i++ {
		p.now = p.now.Add(30 * time.Second)
		assert.Less(t, len(p.send(1, by, inbox(i))[0]), 90, "list %d", i)
		assert.Less(t, len(p.send(1, by, inbox(i))[0]), 30, "the same again")
	}
	byWindow := 0
	for range 400 {
		if segment := p.send(1, by, inbox(20))[0]; segment[0] == 0xf6 {
			byWindow++
		}
	}
	assert.Positive(t, byWindow)
	assert.Less(t, byWindow, 200, "a lane that sends much")
}

// One lane of a stream, or a few, may be idle for long with what they remember.
func TestFewIdleLanesKeepMore(t *testing.T) {
	p := newPair(t, wire.EncoderConfig{}, announcing)
	large := wordy(rand.New(rand.NewPCG(1, 1)))
	by := p.learn(large)
	first := len(p.send(1, by, large)[0])
	assert.Zero(t, p.enc.Rest(p.now))
	assert.Empty(t, p.enc.Written(), "nothing is given back")
	assert.Less(t, len(p.send(1, by, large)[0]), first/10)
	for lane := range uint64(20) {
		p.send(2+lane, by, large)
	}
	assert.Zero(t, p.enc.Rest(p.now))
	assert.Len(t, p.enc.Written(), 1, "of many they are")
	require.NoError(t, p.deliver())
	assert.Len(t, p.send(1, by, large)[0], first)
}

// TestLongTextsTravelTheShorterWay: of a long text the first segment decides whether a window
// serves what goes on. Base64 takes less by frames, markup by the window.
func TestLongTextsTravelTheShorterWay(t *testing.T) {
	const octets = 256 << 10
	raw := make([]byte, octets)
	_, _ = rand.NewChaCha8([32]byte{}).Read(raw)
	var markup strings.Builder
	for _, path := range shared.Files(t, shared.Testdata(t, "soap"), nil) {
		markup.Write(shared.Read(t, path))
	}
	for name, c := range map[string]struct {
		text  string
		most  float64 // of what the text has
		byOne bool    // all but the first segment are frames
	}{
		"base64": {base64.StdEncoding.EncodeToString(raw)[:octets], 0.78, true},
		"markup": {markup.String(), 0.5, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, wire.EncoderConfig{}, allStages)
			segments, total, frames := p.send(1, nil, c.text), 0, 0
			for _, s := range segments {
				if total += len(s); s[0] == 0xfc {
					frames++
				}
			}
			require.Greater(t, len(segments), 1)
			assert.Less(t, float64(total)/float64(len(c.text)), c.most)
			assert.Equal(t, c.byOne, frames >= len(segments)-1, "%d of %d are frames", frames, len(segments))
		})
	}
}
