//go:build interop

package xsd_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// verdicts matches what xmllint prints of each file.
var verdicts = regexp.MustCompile(`(?m)^(\S+) (validates|fails to validate)$`)

// TestInteropXmllintDerivations: the verdicts of TestDerivations are those of xmllint.
func TestInteropXmllintDerivations(t *testing.T) {
	tool := shared.Program(t, "xmllint")
	for _, tc := range append(redefining(), blocking()...) {
		t.Run(tc.what, func(t *testing.T) {
			dir := t.TempDir()
			write := func(name, text string) string {
				path := filepath.Join(dir, name)
				require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
				return path
			}
			for name, text := range tc.files {
				write(name, text)
			}
			args := []string{"--nonet", "--noout", "--schema", filepath.Join(dir, "a.xsd")}
			messages := append(append([]string{e("", "")}, tc.good...), tc.bad...)
			for i, m := range messages {
				args = append(args, write(fmt.Sprintf("%d.xml", i), m))
			}
			says, _ := exec.CommandContext(t.Context(), tool, args...).CombinedOutput()
			told := verdicts.FindAllSubmatch(says, -1)
			if tc.wrong != "" {
				assert.Empty(t, told, "%s", says)
				return
			}
			require.Len(t, told, len(messages), "%s", says)
			for i, m := range told[1:] {
				assert.Equal(t, i < len(tc.good), string(m[2]) == "validates", "%s: %s", messages[i+1], says)
			}
		})
	}
}
