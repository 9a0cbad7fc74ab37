// Command outside is a program in a module of its own: it uses each public package of hhfr for what
// that package is for.
package main

import (
	"context"
	"fmt"
	"os"
)

func main() {
	for _, use := range []struct {
		name string
		of   func(context.Context) error
	}{
		{"hhfr", calls}, {"ctxstore", stores}, {"schema", schemas}, {"soap", envelopes},
		{"negotiate", offers}, {"streamer", streams}, {"wsrm", guarantees},
	} {
		if err := use.of(context.Background()); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", use.name, err)
			os.Exit(1)
		}
	}
}
