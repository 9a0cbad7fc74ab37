package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hhfr/hhfr/compare/internal/program"
)

// sent is the size of one message as `hhfr transcode` packs it: its frames and the sync frames
// before and in it, the frames of its shape, and gzip of it alone.
type sent struct {
	Frames  int64 `json:"frame_octets"`
	Shape   int64 `json:"shape_octets"`
	Gzip    int64 `json:"gzip_octets"`
	Learned int64 `json:"shapes_learned"`
	Widened int64 `json:"shapes_widened"`
}

// sendAll has `hhfr transcode` pack the messages as one stream, without some stages, and compares
// what `hhfr reconstruct` makes of that stream alone.
func sendAll(ctx context.Context, messages [][]byte, without string) (took []sent, err error) {
	dir, err := os.MkdirTemp("", "compare-stream-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	stream, back := filepath.Join(dir, "messages.hhfr"), filepath.Join(dir, "back")
	args := []string{"transcode", "-q", "--stats", "-o", "json", "--out", stream}
	if without != "" {
		args = append(args, "--without", without)
	}
	for i, m := range messages {
		file := filepath.Join(dir, fmt.Sprintf("%06d.xml", i+1))
		if err := os.WriteFile(file, m, 0o600); err != nil {
			return nil, err
		}
		args = append(args, file)
	}
	out, _, err := program.Run(ctx, nil, args...)
	if err != nil {
		return nil, err
	}
	took = make([]sent, len(messages))
	lines := json.NewDecoder(bytes.NewReader(out))
	for i := range took {
		if err := lines.Decode(&took[i]); err != nil {
			return nil, fmt.Errorf("hhfr transcode on message %d: %w", i+1, err)
		}
	}
	if _, _, err := program.Run(ctx, nil, "reconstruct", "-q", stream, "--save-dir", back); err != nil {
		return nil, err
	}
	for i, m := range messages {
		got, err := os.ReadFile(filepath.Join(back, fmt.Sprintf("%06d-request.xml", i+1)))
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(got, m) {
			return nil, fmt.Errorf("message %d does not come back as it was", i+1)
		}
	}
	return took, nil
}
