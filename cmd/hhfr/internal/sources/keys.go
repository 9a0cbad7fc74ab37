package sources

import (
	"errors"
	"io"
	"os"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/flow"
	"github.com/hhfr/hhfr/internal/tlsrecord"
)

// Keys reads --keylog: a key log, which may grow, or a pcapng file with one in it; nil: there is
// none. done closes the file.
func (o *CaptureOptions) Keys() (keys *tlsrecord.KeyLog, done func(), err error) {
	name := o.keylog
	if name == "" {
		return nil, func() {}, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	keys = new(tlsrecord.KeyLog)
	magic := make([]byte, 4)
	n, _ := io.ReadFull(f, magic)
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, nil, err // a pipe: it has no end to read up to
	}
	if flow.IsCapture(magic[:n]) {
		err = flow.AddSecrets(keys, f)
	} else {
		keys.Follow(f)
		keys.Read()
		err = keys.Err()
	}
	if err == nil && keys.Len() == 0 && n > 0 {
		err = exit.Withf(exit.Malformed, "SSLKEYLOGFILE=FILE has hhfr, curl or a browser write one, with lines "+
			"such as CLIENT_RANDOM and two hexadecimal numbers",
			"%s: no TLS key log, nor a pcapng file with one in it", name)
	}
	return keys, func() { _ = f.Close() }, err
}
