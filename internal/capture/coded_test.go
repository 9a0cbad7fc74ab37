package capture_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/hex"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/spool"
)

// TestLongBodiesWithACoding: where only the beginnings of bodies are wanted, as for a listing,
// those that are compressed are decoded as a whole: their lengths and states are those of the text.
func TestLongBodiesWithACoding(t *testing.T) {
	from := rand.NewChaCha8([32]byte{7})
	random := make([]byte, 3*spool.Kept/2)
	_, _ = from.Read(random)
	text := envelope("op", "", "<n>"+hex.EncodeToString(random)+"</n>")
	for coding, encoder := range map[string]func(io.Writer) (io.WriteCloser, error){
		"gzip":    func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
		"deflate": func(w io.Writer) (io.WriteCloser, error) { return zlib.NewWriter(w), nil },
		"zstd":    func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) },
	} {
		t.Run(coding, func(t *testing.T) {
			var coded bytes.Buffer
			w, err := encoder(&coded)
			require.NoError(t, err)
			_, err = io.WriteString(w, text)
			require.NoError(t, err)
			require.NoError(t, w.Close())
			require.Greater(t, coded.Len(), spool.Kept, "the test shows nothing")
			file := exchanged(t, [2]string{"text/xml\r\nContent-Encoding: " + coding, coded.String()})
			for _, starts := range []bool{false, true} {
				r, err := capture.Decode(t.Context(), bytes.NewReader(file), capture.DecodeConfig{Starts: starts})
				require.NoError(t, err)
				require.Len(t, r.Messages, 2)
				for _, m := range r.Messages {
					assert.EqualValues(t, len(text), m.BodyOctets)
					assert.Equal(t, text[:spool.Kept], string(m.Body[:spool.Kept]))
					assert.Equal(t, "op", m.Operation.Local)
					assert.Equal(t, capture.Unchecked, m.State)
					assert.Empty(t, m.Why)
				}
			}
		})
	}
}
