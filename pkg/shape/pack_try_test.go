package shape_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/shape"
)

func TestTrySizes(t *testing.T) {
	for _, dir := range shared.Files(t, shared.Dir(t, "workloads"), func(p string) bool { return filepath.Base(p) == "0001.xml" }) {
		name := filepath.Base(filepath.Dir(dir))
		messages := workload(t, name)
		s, err := shape.Learn(messages[0])
		require.NoError(t, err)
		p := shape.Compile(s)
		var k shape.Packer
		var m, mu shape.Memory
		var un shape.Unpacker
		plain, packed, alone, first := 0, 0, 0, 0
		for i, msg := range messages {
			segments := split(t, p, msg, 16384-20, 0)
			var st, st2, stu shape.Packing
			var m2 shape.Memory
			for j, sg := range segments {
				last := j == len(segments)-1
				plain += len(sg.octets)
				packedSegment := k.Pack(nil, p, &st, &m, sg.octets, last, 16384)
				n := len(packedSegment)
				back, err := un.Unpack(nil, p, &stu, &mu, packedSegment, last, 16384)
				require.NoError(t, err)
				require.Equal(t, sg.octets, back)
				packed += n
				if i == 0 {
					first += n
				}
				alone += len(k.Pack(nil, p, &st2, &m2, sg.octets, last, 16384))
			}
		}
		n := float64(len(messages))
		t.Logf("%-14s plain %8.1f columns %8.1f memory %8.1f first %d", name, float64(plain)/n, float64(alone)/n, float64(packed)/n, first)
	}
	for _, f := range []string{"publish100.xml", "publish911.xml"} {
		msg, err := os.ReadFile(filepath.Join(shared.Dir(t, "corpus"), "messages/soap11/jtlm", f))
		require.NoError(t, err)
		s, err := shape.Learn(msg)
		require.NoError(t, err)
		p := shape.Compile(s)
		var k shape.Packer
		var m, mu shape.Memory
		var st, stu shape.Packing
		var un shape.Unpacker
		plain, packed := 0, 0
		segments := split(t, p, msg, 16384-20, 0)
		for j, sg := range segments {
			plain += len(sg.octets)
			ps := k.Pack(nil, p, &st, &m, sg.octets, j == len(segments)-1, 16384)
			packed += len(ps)
			back, err := un.Unpack(nil, p, &stu, &mu, ps, j == len(segments)-1, 16384)
			require.NoError(t, err)
			require.Equal(t, sg.octets, back)
		}
		t.Log(f, len(segments), plain, packed)
	}
}
