package capture_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/shape/transit"
)

// The session in hex with which docs/wire-format.md begins is one: its bytes are the frames that
// the page says, field by field, and decode to the message that the page shows.
func TestSessionOfThePage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "wire-format.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n## A session in hex\n")
	require.True(t, found, "the page has no session")
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := strings.Split(section, "```")
	require.Len(t, blocks, 5, "a message and a session")
	message, session := strings.TrimSpace(blocks[1]), strings.TrimPrefix(blocks[3], "\n")

	var runs [2]run
	var again annotated
	for _, f := range framesOfPage(t, session) {
		d := &runs[f.direction]
		parsed, n, err := frame.Parse(f.octets, int64(len(d.octets)), 0)
		require.NoError(t, err, f.heading)
		require.Equal(t, len(f.octets), n, "bytes after the frame under %q", f.heading)
		d.octets = append(d.octets, f.octets...)
		again.frame(t, f.direction, parsed, f.octets)
	}
	assert.Equal(t, again.text.String(), session, "what the bytes of the page say, and what it says")

	runs[0].name, runs[1].name = capture.RunName(1, 0, 0), capture.RunName(1, 1, 0)
	r, err := decodeStreams(t, runs[:], capture.DecodeConfig{})
	require.NoError(t, err)
	require.Len(t, r.Messages, 2)
	for _, m := range r.Messages {
		assert.Equal(t, message, string(m.Body))
		assert.Equal(t, capture.Verified, m.State)
	}
}

type pageFrame struct {
	heading   string
	direction int
	octets    []byte
}

var arrows = [2]string{"→", "←"}

// framesOfPage reads frames: a heading with the arrow of its direction, then lines of two columns,
// the first of which has the bytes.
func framesOfPage(t *testing.T, session string) (list []pageFrame) {
	t.Helper()
	for line := range strings.Lines(session) {
		for direction, arrow := range arrows {
			if strings.HasPrefix(line, arrow) {
				list = append(list, pageFrame{heading: strings.TrimSpace(line), direction: direction})
			}
		}
		if digits, ok := strings.CutPrefix(line, "  "); ok {
			digits, _, _ = strings.Cut(digits, "   ")
			octets, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(digits), " ", ""))
			require.NoError(t, err, line)
			require.NotEmpty(t, list, "bytes before the first heading")
			last := &list[len(list)-1]
			last.octets = append(last.octets, octets...)
		}
	}
	require.NotEmpty(t, list, "no frame was found")
	return list
}

// annotated writes frames as the page has them.
type annotated struct {
	text  strings.Builder
	left  []byte // of the frame
	shape []byte // that was announced last, its serialization
}

// octetsOfLine are the bytes on one line.
const octetsOfLine = 16

func (a *annotated) heading(direction int, text string) {
	if a.text.Len() > 0 {
		a.text.WriteString("\n")
	}
	fmt.Fprintf(&a.text, "%s %s\n", arrows[direction], text)
}

// take writes the next n bytes, and what they are.
func (a *annotated) take(t *testing.T, n int, format string, args ...any) {
	t.Helper()
	require.LessOrEqual(t, n, len(a.left), format)
	line, what := a.left[:n], fmt.Sprintf(format, args...)
	a.left = a.left[n:]
	for ; len(line) > 0; what = "" {
		n := min(len(line), octetsOfLine)
		row := fmt.Sprintf("  %-*s   %s", 3*octetsOfLine-1, strings.ToUpper(fmt.Sprintf("% x", line[:n])), what)
		a.text.WriteString(strings.TrimRight(row, " ") + "\n")
		line = line[n:]
	}
}

func (a *annotated) frame(t *testing.T, direction int, f frame.Frame, octets []byte) {
	t.Helper()
	a.left = octets
	switch f := f.(type) {
	case frame.Hello:
		a.heading(direction, "hello, section 3")
		a.hello(t, f)
	case frame.Shape:
		a.heading(direction, "shape, section 4")
		a.announced(t, f)
	case frame.Data:
		a.heading(direction, "data, section 5")
		a.data(t, f)
	case frame.Close:
		a.heading(direction, "close, section 8")
		a.take(t, 2, "kind %d; length %d", octets[0], octets[1])
		a.take(t, 2, "code %d (%s); text of %d octets", f.Code, f.Code, len(f.Text))
		a.take(t, width(f.Messages), "%d message", f.Messages)
		a.take(t, 4, "check of that message")
	default:
		require.Failf(t, "a frame that the page should not have", "%T", f)
	}
	assert.Empty(t, a.left, "bytes of the frame that the page does not explain")
}

func (a *annotated) hello(t *testing.T, f frame.Hello) {
	t.Helper()
	role := "initiator"
	if f.Responder {
		role = "responder"
	}
	l := f.Limits
	a.take(t, 8, "mark")
	a.take(t, 1, "length %d", a.left[0])
	a.take(t, 2, "scheme %d; role %s", 1, role)
	a.take(t, 16, "session")
	a.take(t, 1, "length of the token: %d", len(f.Token))
	a.take(t, len(f.Token), "token")
	a.take(t, 8, "sync word")
	a.take(t, width(f.Representation, f.Stages), "representation %d (binary); stages %d", f.Representation, f.Stages)
	a.take(t, width(l.MaxFragment, l.MaxMessage), "max fragment %d; max message %d", l.MaxFragment, l.MaxMessage)
	a.take(t, width(l.MaxShapes, l.MaxShapeBytes), "max shapes %d; max shape octets %d", l.MaxShapes, l.MaxShapeBytes)
	a.take(t, width(l.MaxExchanges, l.Window, l.MaxHeld),
		"max exchanges %d; window %d; max held %d", l.MaxExchanges, l.Window, l.MaxHeld)
	a.take(t, width(f.Lifetime)+1, "lifetime %d; target of %d octets", f.Lifetime, len(f.Target))
	a.take(t, 4, "own check")
}

func (a *annotated) announced(t *testing.T, f frame.Shape) {
	t.Helper()
	a.take(t, 2, "kind %d; length %d", a.left[0], a.left[1])
	if f.Form == frame.Reference {
		assert.Equal(t, sha256.Sum256(a.shape), f.Fingerprint)
		a.take(t, 2, "number %d; form %d (reference)", f.Number, f.Form)
		a.take(t, 32, "fingerprint of that shape")
		return
	}
	var err error
	a.shape, err = transit.Unpack(f.Piece, nil)
	require.NoError(t, err)
	require.Equal(t, f.Total, uint64(len(f.Piece)))
	a.take(t, 2, "number %d; form %d (full)", f.Number, f.Form)
	a.take(t, width(f.Total, f.Offset), "total %d; offset %d", f.Total, f.Offset)
	a.take(t, 1, "packed (4.1): form %d (folded, no base)", f.Piece[0])
	a.take(t, len(f.Piece)-1, "DEFLATE; unfolded the serialization has %d octets", len(a.shape))
}

func (a *annotated) data(t *testing.T, f frame.Data) {
	t.Helper()
	what := "request"
	if f.Reply {
		what = "reply"
	}
	other := f.Head || f.OneWay || f.NamesExchange || f.NamesLane
	require.Equal(t, []bool{true, true, false}, []bool{f.First, f.Last, other})
	a.take(t, 1, "first and last fragment of a %s", what)
	a.take(t, 1, "length %d", len(f.Payload))
	a.take(t, 1, "body under shape number %d", f.Payload[0])
	item, n := binary.Uvarint(f.Payload[1:])
	require.Equal(t, len(f.Payload), 1+n)
	number := item - 1
	value := int64(number>>3>>1) ^ -int64(number>>3&1)
	a.take(t, n, "%d = 1 + 8·zigzag(%d) + %d: %d·10^-%d", item, value, number&7, value, number&7)
}

// width returns how many bytes the uvarints of values take.
func width(values ...uint64) (n int) {
	for _, v := range values {
		n += len(binary.AppendUvarint(nil, v))
	}
	return n
}
