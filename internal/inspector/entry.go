package inspector

import (
	"encoding/json"
	"time"

	"github.com/hhfr/hhfr/internal/bin"
	"github.com/hhfr/hhfr/internal/capture"
)

// LogEntry is a message that is stored, with what others say of it.
type LogEntry struct {
	// Decoded is the message, its Body at most the first MiB ([Log.WriteBody] gives all), without
	// what only the reader of the capture knows.
	capture.Decoded
	// Call, Took and Control are as those that list messages have them.
	Call    string
	Took    time.Duration
	Control string
	// Path is that of the service of the stream: requests without a head go there.
	Path string
	// Shapes are the URIs of the shapes of its head and body; empty: it has none.
	Shapes [2]string
}

// longest is more than any field has, in bytes.
const longest = 1 << 31

// stored are the bytes of an entry: its body behind everything else.
func (e LogEntry) stored() ([]byte, error) {
	body := e.Body
	e.Body = nil
	rest, err := json.Marshal(&e)
	return append(bin.AppendBytes(nil, rest), body...), err
}

// read reads what [LogEntry.stored] made.
func (e *LogEntry) read(b []byte) error {
	in := bin.NewCursor(b, 0)
	rest := in.Bytes(longest)
	if err := in.Err(); err != nil {
		return err
	}
	err := json.Unmarshal(rest, e)
	e.Body = in.Rest()
	return err
}
