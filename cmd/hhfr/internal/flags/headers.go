package flags

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// UnchangingHeaders adds the flag for unchanging headers; ReadHeaders reads the files that it
// names.
func UnchangingHeaders(f *pflag.FlagSet, files *[]string) {
	f.StringArrayVar(files, "unchanging-header", nil,
		"file with a header block that messages have in common: it travels once; may be given again")
}

// mostHeader bounds what is read of a file: longer blocks are rejected by their length.
const mostHeader = 64 << 10

// ReadHeaders reads the files of --unchanging-header; each has one block.
func ReadHeaders(files []string) (blocks []string, err error) {
	for _, name := range files {
		block, err := readHeader(name)
		if err != nil {
			return nil, err
		}
		if err := negotiate.CheckHeader(block); err != nil {
			return nil, exit.Withf(exit.Malformed,
				"one element, as it stands in the messages, that declares its own prefixes: "+
					"docs/negotiation.md, section 3.2", "--unchanging-header %s: %w", name, err)
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
