package listing

import (
	"bytes"
	"fmt"
	"io"
	"net/http"

	"github.com/hhfr/hhfr/internal/capture"
)

// color is a parameter of the control sequence that sets it (ECMA-48, section 8.3.117).
type color int

const (
	plainText color = 0
	bold      color = 1
	red       color = 31
	yellow    color = 33
)

// colorOf is red for what went wrong, and yellow for what may have.
func colorOf(m *listed) color {
	asked := m.asked()
	switch {
	case !m.Whole(), asked.Status() >= http.StatusBadRequest, asked.Fault() != "":
		return red
	case m.State == capture.Unverified:
		return yellow
	}
	return plainText
}

// painted writes a line in a color, if there are any.
func (l *rowLayout) painted(w io.Writer, line []byte, c color) error {
	var err error
	if l.paint && c != plainText {
		_, err = fmt.Fprintf(w, "\x1b[%dm%s\x1b[0m\n", int(c), bytes.TrimSuffix(line, []byte("\n")))
	} else {
		_, err = w.Write(line)
	}
	return err
}
