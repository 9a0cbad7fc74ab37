package command

import (
	"errors"
	"slices"
)

// Closers are what a command has open.
type Closers struct{ all []func() error }

// Closes has [Closers.Close] call f, before what it was to call so far.
func (c *Closers) Closes(f func() error) { c.all = append(c.all, f) }

// Ends is [Closers.Closes] of what cannot fail.
func (c *Closers) Ends(f func()) { c.Closes(func() error { f(); return nil }) }

// Close closes all, in the reverse order of opening.
func (c *Closers) Close() (err error) {
	for _, f := range slices.Backward(c.all) {
		err = errors.Join(err, f())
	}
	c.all = nil
	return err
}
