package hhfr

import (
	"strconv"

	"github.com/hhfr/hhfr/pkg/negotiate"
)

// PlainServices returns how many services are remembered of which OnPlain was told, after a number
// of them.
func PlainServices(count int) int {
	p := &plainness{tell: func(error) {}}
	for n := range count {
		p.agreed("http://host"+strconv.Itoa(n), negotiate.Agreed{Why: "no stream"})
	}
	return len(p.plain)
}
