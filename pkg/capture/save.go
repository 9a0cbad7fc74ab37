package capture

import (
	"fmt"
	"os"
	"path/filepath"
)

// FileName is the name under which a message is saved: its number and kind. Negotiations, which have no number, are told apart by their exchange.
func (d *Decoded) FileName() string {
	kind := "request"
	if d.Reply {
		kind = "reply"
	}
	if d.Number == 0 {
		return fmt.Sprintf("negotiation-%d-%d-%s.xml", d.flow, d.Exchange, kind)
	}
	return fmt.Sprintf("%06d-%s.xml", d.Number, kind)
}

// Save writes the bodies of whole messages below dir, which it makes. Withdrawn, incomplete and undecodable ones are left out.
func (r *Result) Save(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, m := range r.Messages {
		if !m.Whole() {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, m.FileName()), m.Body, 0o600); err != nil {
			return err
		}
	}
	return nil
}
