package capture

import (
	"fmt"
	"os"
	"path/filepath"
)

// WithdrawnSuffix ends the names of files with withdrawn messages.
const WithdrawnSuffix = ".withdrawn"

// FileName returns the name under which a message is saved: its number and kind. Negotiations,
// which have no number, are distinguished by their exchange.
func (d *Decoded) FileName() string {
	kind := "request"
	switch {
	case d.Interim:
		kind = fmt.Sprintf("interim-%d-%d", d.Direction, d.Index)
	case d.Reply:
		kind = "reply"
	}
	if d.flow == overDatagram { // there may be several of each kind
		kind += fmt.Sprintf("-%d", d.Packet)
	}
	if d.Number == 0 {
		return fmt.Sprintf("negotiation-%d-%d-%s.xml", max(d.flow, 0), d.Exchange, kind)
	}
	return fmt.Sprintf("%06d-%s.xml", d.Number, kind)
}

// Save writes the body of a whole message below dir; that of a withdrawn one under a name that ends
// in [WithdrawnSuffix]. Incomplete and undecodable messages are left out.
func (d *Decoded) Save(dir string) (err error) {
	name := filepath.Join(dir, d.FileName())
	switch {
	case d.State == Withdrawn:
		name += WithdrawnSuffix
	case !d.Whole():
		return nil
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
	}()
	return d.WriteBody(f)
}

// Withdraw renames the files of messages that were saved before their check.
func (c *Check) Withdraw(dir string) error {
	if c.State != Withdrawn {
		return nil
	}
	for _, d := range c.Messages {
		if name := filepath.Join(dir, d.FileName()); d.State == Withdrawn {
			if err := os.Rename(name, name+WithdrawnSuffix); err != nil && !os.IsNotExist(err) {
				return err
			}
		}
	}
	return nil
}
