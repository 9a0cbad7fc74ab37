package lexical

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestUUIDs(t *testing.T) {
	const text = "52fdfc07-2182-654f-163f-5f0f9a621d72"
	const digitsOnly = "00112233-4455-6677-8899-001122334455"
	for _, tc := range []struct {
		text string
		form byte
	}{
		{text, 1}, {strings.ToUpper(text), 2}, {"urn:uuid:" + text, 3}, {"urn:uuid:" + strings.ToUpper(text), 4},
		{digitsOnly, 1}, {"urn:uuid:" + digitsOnly, 3},
		{"URN:UUID:" + text, 0}, {text[1:], 0}, {text + "0", 0}, {strings.ReplaceAll(text, "-", ""), 0},
		{"{" + text + "}", 0}, {"", 0},
		{strings.Replace(text, "fd", "FD", 1), 0}, {strings.Replace(text, "1d72", "1D72", 1), 0},
	} {
		form, octets := ParseUUID([]byte(tc.text))
		require.Equal(t, tc.form, form, tc.text)
		if form == 0 {
			continue
		}
		want, err := hex.DecodeString(strings.ReplaceAll(tc.text[len(tc.text)-uuidLen:], "-", ""))
		require.NoError(t, err)
		assert.Equal(t, want, octets[:], tc.text)
		assert.Equal(t, tc.text, string(AppendUUID(nil, form, octets[:])))
	}
	for at := range text {
		for c := range 256 {
			b := []byte(text)
			b[at] = byte(c)
			if form, octets := ParseUUID(b); form != 0 {
				require.Equal(t, string(b), string(AppendUUID(nil, form, octets[:])))
				require.Equal(t, text[at] == '-', c == '-', "%q", b)
			} else {
				require.False(t, text[at] != '-' && (c >= '0' && c <= '9' || c >= 'a' && c <= 'f'), "%q", b)
			}
		}
	}
}
