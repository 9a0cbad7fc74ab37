package binary_test

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/codec/binary"
)

func deflated(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestCompression)
	require.NoError(t, err)
	_, err = w.Write(b)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

func TestShapesInTransitThatAreNone(t *testing.T) {
	none := func(binary.Fingerprint) ([]byte, error) { return nil, errors.New("not in the store") }
	long := func(binary.Fingerprint) ([]byte, error) { return make([]byte, 30000), nil }
	good := append([]byte{0}, deflated(t, []byte("any octets"))...)
	for name, c := range map[string]struct {
		octets []byte
		base   func(binary.Fingerprint) ([]byte, error)
	}{
		"nothing":          {nil, none},
		"unknown form":     {append([]byte{2}, good[1:]...), none},
		"cut":              {good[:len(good)-1], none},
		"octets left over": {append(bytes.Clone(good), 0), none},
		"too long":         {append([]byte{0}, deflated(t, make([]byte, 2<<20))...), none},
		"base cut":         {[]byte{1, 2, 3}, none},
		"base not there":   {append(append([]byte{1}, make([]byte, 32)...), good[1:]...), none},
		"base too long":    {append(append([]byte{1}, make([]byte, 32)...), good[1:]...), long},
	} {
		_, err := binary.Serialization(c.octets, binary.StageShapes, c.base)
		require.ErrorIs(t, err, &binary.Error{Code: binary.BadShape}, name)
	}
	out, err := binary.Serialization(good, binary.StageShapes, none)
	require.NoError(t, err)
	assert.Equal(t, "any octets", string(out))
	out, err = binary.Serialization(good, 0, none)
	require.NoError(t, err)
	assert.Equal(t, good, out)
}

// TestWidenedShapesAreSmallInTransit: what widens a shape travels as what is new in it.
func TestWidenedShapesAreSmallInTransit(t *testing.T) {
	d := newPacking(t, binary.Options{})
	message := func(extra string) string {
		return `<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"><s:Body><a><quite>1</quite><some>2</some><elements>3</elements><of>4</of><names>5</names><that>6</that><no>7</no><dictionary>8</dictionary><has>9</has>` + extra + `</a></s:Body></s:Envelope>`
	}
	octets := map[string]int{}
	for _, extra := range []string{"", "<one>x</one>", "<two>x</two>"} {
		require.NoError(t, d.from.coder.Split(nil, strings.NewReader(message(extra)), 16000, func(_ bool, n uint64, _ bool, _ []byte) error {
			fp, full, ok := d.from.coder.Announce(n)
			if !ok {
				return nil
			}
			require.NotEmpty(t, full)
			octets[extra] = len(full)
			require.NoError(t, d.to.coder.Define(n, full))
			known, _ := d.to.coder.Known(n)
			require.True(t, known)
			serialization, err := d.to.store.Get(t.Context(), fp)
			require.NoError(t, err)
			require.Equal(t, fp, binary.Fingerprint(sha256.Sum256(serialization)))
			return nil
		}))
	}
	assert.Greater(t, octets[""], 100)
	assert.Less(t, octets["<one>x</one>"], octets[""])
	assert.Less(t, octets["<two>x</two>"], 80)
}

// TestRecordsOfTheCorpusAreColumns: the longest arrays of the corpus take less than their bit-packed EXI, without any memory between messages.
func TestRecordsOfTheCorpusAreColumns(t *testing.T) {
	dir := shared.Dir(t, "corpus", "messages", "soap11", "jtlm")
	for name, most := range map[string]int{"publish100.xml": 9511, "publish911.xml": 86000} {
		k := newPacking(t, binary.Options{Without: binary.StageMemory})
		message := shared.Read(t, filepath.Join(dir, name))
		var number uint64
		var segments [][]byte
		require.NoError(t, k.from.coder.Split(nil, bytes.NewReader(message), 16384-32, func(_ bool, n uint64, text bool, data []byte) error {
			require.False(t, text)
			if number == 0 {
				_, full, ok := k.from.coder.Announce(n)
				require.True(t, ok)
				require.NoError(t, k.to.coder.Define(n, full))
			}
			number, segments = n, append(segments, bytes.Clone(data))
			return nil
		}))
		pack, unpack := k.from.coder.NewPack(0, number, false), k.to.coder.NewUnpack(0, number, false, 0)
		octets, plain := 0, 0
		for i, s := range segments {
			packed := pack(nil, s, i == len(segments)-1, 16384)
			back, err := unpack(nil, packed, i == len(segments)-1, 16384)
			require.NoError(t, err)
			require.Equal(t, string(s), string(back))
			octets, plain = octets+len(packed)+4, plain+len(s)
		}
		assert.LessOrEqual(t, octets, most, name)
		t.Logf("%s: %d octets, content %d, packed %d in %d segments", name, len(message), plain, octets, len(segments))
	}
}
