package trust

import (
	"crypto/tls"
	"fmt"
	"io"
	"os"
	"sync"
)

// KeyWriter writes the keys of connections in TLS: to the file that SSLKEYLOGFILE names, and into a
// recording that is to have them. It is safe for concurrent use.
type KeyWriter struct {
	file *os.File // nil: SSLKEYLOGFILE names none

	mu       sync.Mutex
	recorded io.Writer // nil: none so far
}

// OpenKeyWriter opens the file that SSLKEYLOGFILE names; nil if it names none, and no recording is
// to have the keys either.
func OpenKeyWriter(recorded bool) (*KeyWriter, error) {
	name := os.Getenv("SSLKEYLOGFILE")
	switch {
	case name == "" && !recorded:
		return nil, nil
	case name == "":
		return &KeyWriter{}, nil
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("SSLKEYLOGFILE: %w", err)
	}
	return &KeyWriter{file: f}, nil
}

// Of makes a configuration write its keys; nil: it does not.
func (k *KeyWriter) Of(c *tls.Config) {
	if k != nil {
		c.KeyLogWriter = k
	}
}

// Record has the keys written to a recording as well, from now on.
func (k *KeyWriter) Record(to io.Writer) {
	if k != nil && to != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.recorded = to
	}
}

// Write takes a line.
func (k *KeyWriter) Write(line []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.recorded != nil {
		if _, err := k.recorded.Write(line); err != nil {
			return 0, err
		}
	}
	if k.file != nil {
		return k.file.Write(line)
	}
	return len(line), nil
}

// Close closes the file.
func (k *KeyWriter) Close() error {
	if k == nil || k.file == nil {
		return nil
	}
	return k.file.Close()
}
