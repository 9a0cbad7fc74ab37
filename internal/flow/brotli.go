//go:build !js

package flow

import (
	"io"

	"github.com/andybalholm/brotli"
)

// unbrotli undoes the content coding br.
func unbrotli(in io.Reader) (io.Reader, error) { return brotli.NewReader(in), nil }
