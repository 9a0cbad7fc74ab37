package flow

import (
	"errors"
	"io"

	"github.com/hhfr/hhfr/internal/tlsrecord"
)

// AddSecrets reads a capture to its end, or to where it is damaged, and adds the secrets in it to
// keys.
func AddSecrets(keys *tlsrecord.KeyLog, r io.Reader) error {
	f, err := Open(r)
	for err == nil {
		_, err = f.Next()
		for _, log := range f.packets.Secrets() {
			keys.Add(log)
		}
	}
	if errors.Is(err, &Error{Code: ReadFailed}) {
		return err
	}
	return nil
}
