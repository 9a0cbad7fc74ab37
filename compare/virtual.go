package main

import (
	"testing"
	"testing/synctest"
)

// virtually runs f in virtual time, which advances only when nothing computes and then jumps over
// waits: it contains no processor time, however busy the machine is. The runtime offers that to
// tests alone, so f is run as an unreported one; TestVirtually checks that this works. f must not
// wait for anything that was created outside.
func virtually(f func() error) (err error) {
	synctest.Test(new(testing.T), func(*testing.T) { err = f() })
	return err
}
