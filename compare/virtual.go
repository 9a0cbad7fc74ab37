package main

import (
	"testing"
	"testing/synctest"
)

// virtually runs f in virtual time, which goes on only when nothing computes and then jumps over
// waits: there is no processor time in it, however busy the machine is. The runtime gives that to
// tests alone, so f is run as one that nobody reports; TestVirtually sees that this works. f must
// not wait for anything that was made outside.
func virtually(f func() error) (err error) {
	synctest.Test(new(testing.T), func(*testing.T) { err = f() })
	return err
}
