package mocked

import (
	"fmt"
	"io"
	"os"

	"github.com/hhfr/hhfr"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/mock"
)

// maxRecorded bounds the messages of a capture that a mock answers with, in bytes: they are in
// memory.
const maxRecorded = 256 << 20

// recorded are the exchanges of a capture that are whole.
func recorded(file string) ([]mock.KnownReply, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all := []mock.KnownReply{}
	begun := map[int]mock.KnownReply{} // by their numbers
	size := 0
	for m, err := range hhfr.Decode(f, nil) {
		if err != nil {
			return nil, exit.Withf(exit.Malformed, "a folder with replies, or a capture or recording",
				"--replies %s: %w", file, err)
		}
		if m.Exchange == 0 || m.Err != nil {
			continue
		}
		text, err := io.ReadAll(m.Body)
		if err != nil {
			return nil, fmt.Errorf("--replies %s: %w", file, err)
		}
		if size += len(text); size > maxRecorded {
			return nil, exit.Withf(exit.Malformed, "", "--replies %s: more than %d bytes of messages", file,
				maxRecorded)
		}
		if m.Status == 0 {
			begun[m.Exchange] = mock.KnownReply{Header: m.Header, Request: text}
		} else if x, ok := begun[m.Exchange]; ok {
			delete(begun, m.Exchange)
			x.Reply, x.Status = text, m.Status
			all = append(all, x)
		}
	}
	return all, nil
}
