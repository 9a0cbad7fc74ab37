package listing

import (
	"bytes"
	"fmt"
	"io"
	"net/http"

	"github.com/hhfr/hhfr/internal/capture"
)

// Color is a parameter of the control sequence that sets it (ECMA-48, section 8.3.117).
type Color int

const (
	plainText Color = 0
	bold      Color = 1
	Red       Color = 31
	Yellow    Color = 33
)

// ColorOf is red for what went wrong, and yellow for what may have.
func ColorOf(m *ListedMessage) Color {
	switch {
	case !m.Whole(), m.Status() >= http.StatusBadRequest, m.Fault() != "":
		return Red
	case m.State == capture.Unverified:
		return Yellow
	}
	return plainText
}

// painted writes a line in a color, if there are any.
func (l *Rows) painted(w io.Writer, line []byte, c Color) error {
	var err error
	if l.paint && c != plainText {
		_, err = fmt.Fprintf(w, "\x1b[%dm%s\x1b[0m\n", int(c), bytes.TrimSuffix(line, []byte("\n")))
	} else {
		_, err = w.Write(line)
	}
	return err
}
