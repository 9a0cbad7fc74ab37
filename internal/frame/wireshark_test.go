package frame_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
)

// dissector is the program for Wireshark.
var dissector = filepath.Join("..", "..", "scripts", "wireshark", "hhfr.lua")

// TestWiresharkKnowsEachField: the dissector has a field for each name that frames have, and a name
// for each kind.
func TestWiresharkKnowsEachField(t *testing.T) {
	program, err := os.ReadFile(dissector)
	require.NoError(t, err)
	known := map[string]bool{}
	for _, quoted := range regexp.MustCompile(`"([^"\n]*)"`).FindAllSubmatch(program, -1) {
		known[string(quoted[1])] = true
	}
	for name, f := range frames {
		assert.True(t, known[f.Kind().String()], name)
		fields, _, err := frame.Dissect(f.AppendTo(nil), nil)
		require.NoError(t, err, name)
		for _, one := range fields {
			assert.True(t, known[one.Name], "%s: %s", name, one.Name)
		}
	}
}
