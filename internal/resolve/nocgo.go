//go:build !cgo || netgo

package resolve

const cgo = false
