//go:build !unix

package main

// descriptorLimit: where there is no such limit, memory is the limit.
func descriptorLimit() (limit uint64, limited bool) { return 0, false }
