package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// headerFlag adds the flag for unchanging headers; readHeaders reads the files that it names.
func headerFlag(f *pflag.FlagSet, files *[]string) {
	f.StringArrayVar(files, "unchanging-header", nil,
		"file with a header block that messages have in common: it travels once; may be given again")
}

// mostHeader bounds what is read of a file: longer blocks are rejected by their length.
const mostHeader = 64 << 10

func readHeaders(files []string) (blocks []string, err error) {
	for _, name := range files {
		block, err := readHeader(name)
		if err != nil {
			return nil, err
		}
		if err := negotiate.CheckHeader(block); err != nil {
			return nil, failure(exitMalformed, fmt.Errorf("--unchanging-header %s: %w", name, err),
				"one element, as it stands in the messages, that declares its own prefixes: "+
					"docs/negotiation.md, section 3.2")
		}
		blocks = append(blocks, block)
	}
	return blocks, nil
}

// readHeader returns a block without the white space around it, which editors add.
func readHeader(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("--unchanging-header: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, mostHeader))
	if err != nil {
		return "", fmt.Errorf("--unchanging-header: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// tellHeaders says why unchanging headers still travel with each message.
func tellHeaders(g *global, sess *session.Session, messages int) {
	a := sess.Agreed()
	for _, d := range a.Refused {
		if d.Item == "UnchangingHeader" {
			g.warn("unchanging headers travel with each message: refused: %s", d.Why)
		}
	}
	if a.HHFR && len(a.Facts.Headers) > 0 && messages > 0 && sess.HeadersTaken() == 0 {
		g.warn("no message has one of the unchanging headers byte for byte: all traveled as they are")
	}
}
