//go:build !unix

package service

// descriptorLimit: where there is no such limit, memory is the limit.
func descriptorLimit() (limit uint64, limited bool) { return 0, false }
