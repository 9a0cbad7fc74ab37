package flow

import (
	"errors"
	"io"
)

// unbrotli says that br is not decoded in a page: the decoder brings net/http along, half a page.
func unbrotli(io.Reader) (io.Reader, error) {
	return nil, errors.New("a page does not decode it; hhfr decode does")
}
