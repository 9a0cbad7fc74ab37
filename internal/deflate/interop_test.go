//go:build interop

package deflate_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/deflate"
	"github.com/hhfr/hhfr/internal/shared"
)

// TestInteropZlib: what zlib itself makes of many inputs, also if it is fed in pieces, is what
// comes out here.
func TestInteropZlib(t *testing.T) {
	const script = `
import base64, sys, zlib
for line in sys.stdin:
    level, window, memory, step, plain = line.split(" ")
    plain, step = base64.b64decode(plain), int(step)
    z = zlib.compressobj(int(level), zlib.DEFLATED, -int(window), int(memory))
    out = b"".join(z.compress(plain[i:i + step]) for i in range(0, len(plain), step))
    print(base64.b64encode(out + z.flush()).decode())
`
	rnd := rand.New(rand.NewPCG(1, 2))
	kinds := []string{"xml", "zeros", "noise", "two", "skewed", "far"}
	var in strings.Builder
	var params []deflate.Params
	var plains [][]byte
	add := func(plain []byte) {
		p := deflate.Params{Level: 1 + rnd.IntN(9), Window: []int{15, 15, 9 + rnd.IntN(7)}[rnd.IntN(3)],
			Memory: []int{8, 9, 1 + rnd.IntN(9)}[rnd.IntN(3)]}
		params, plains = append(params, p), append(plains, plain)
		fmt.Fprintln(&in, p.Level, p.Window, p.Memory, []int{1 << 20, 512, 8192, 1000}[rnd.IntN(4)],
			base64.StdEncoding.EncodeToString(plain))
	}
	for range 1500 {
		add(made(kinds[rnd.IntN(len(kinds))], rnd.IntN(1<<(2+rnd.IntN(17))), rnd.Uint32()>>1))
	}
	for _, path := range shared.Messages(t) {
		if plain := shared.Read(t, path); len(plain) <= deflate.MaxPlain {
			add(plain)
		}
	}
	cmd := exec.CommandContext(t.Context(), shared.Program(t, "python3"), "-c", script)
	cmd.Stdin = strings.NewReader(in.String())
	out, err := cmd.Output()
	require.NoError(t, err)
	lines, refused := strings.Fields(string(out)), 0
	require.Len(t, lines, len(plains))
	for i, line := range lines {
		want, err := base64.StdEncoding.DecodeString(line)
		require.NoError(t, err)
		got, ok := deflate.Append(nil, plains[i], params[i])
		if !ok {
			refused++ // it takes too much work
			continue
		}
		assert.True(t, bytes.Equal(want, got), "%v of %d bytes: %.60q", params[i], len(plains[i]), plains[i])
	}
	assert.Less(t, refused, len(lines)/20)
}
