package printing_test

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
)

func TestShellWord(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		bash = "" // what is written is compared all the same
	}
	for text, want := range map[string]string{
		"":                  "''",
		"a b":               "'a b'",
		"it's $HOME\n\"x\"": `'it'\''s $HOME` + "\n" + `"x"'`,
		"\x1b[31m it's \\":  `$'\033[31m it\'s \\'`,
		"a\tb\u202ec":       `$'a\011b\342\200\256c'`,
	} {
		got := printing.ShellWord(text)
		assert.Equal(t, want, got)
		if bash != "" {
			said, err := exec.CommandContext(t.Context(), bash, "-c", "printf %s "+got).Output()
			require.NoError(t, err)
			assert.Equal(t, text, string(said))
		}
	}
}
