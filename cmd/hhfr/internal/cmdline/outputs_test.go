package cmdline

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/internal/capture"
)

// TestSavedForm: the names that decode writes to folders are known as such.
func TestSavedForm(t *testing.T) {
	for _, name := range []string{
		capture.RunName(1, 0, 0), capture.RunName(12, 1, 1<<40),
		(&capture.Decoded{Number: 1}).FileName(),
		(&capture.Decoded{Number: 12345678, Reply: true}).FileName(),
		(&capture.Decoded{Number: 1, Reply: true, Interim: true}).FileName(),
		(&capture.Decoded{Number: 1}).FileName() + capture.WithdrawnSuffix,
		(&capture.Decoded{}).FileName(), (&capture.Decoded{Reply: true}).FileName(),
	} {
		assert.Regexp(t, SavedForm(), name)
	}
	for _, name := range []string{"1-request.xml", "000001-request.xml.gz", "stream.bin", "a-000001-request.xml"} {
		assert.NotRegexp(t, SavedForm(), name)
	}
}
