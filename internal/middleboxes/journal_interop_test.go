//go:build interop

package middleboxes_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
)

// journal is the log of a client.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func newJournal() *journal { return new(journal) }

func (j *journal) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// Write appends a line.
func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// warned checks that there was one warning, with this text.
func (j *journal) warned(t *testing.T, says ...string) {
	t.Helper()
	all := j.String()
	assert.Equal(t, 1, strings.Count(all, "level=WARN"), all)
	for line := range strings.Lines(all) {
		if !strings.Contains(line, "level=WARN") {
			continue
		}
		for _, want := range says {
			assert.Contains(t, line, want)
		}
	}
}

// silent checks that there was no warning.
func (j *journal) silent(t *testing.T) {
	t.Helper()
	assert.NotContains(t, j.String(), "level=WARN")
}
