package description

import (
	"errors"
	"io"
	"net"
	"os"
	"regexp"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/xsd"
	"github.com/hhfr/hhfr/pkg/schema"
)

// ReadSchema reads the file of --schema or --reply-schema; nil without one.
func ReadSchema(name string) (*schema.Schema, error) {
	if name == "" {
		return nil, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return parseSchema(name, text)
}

// parseSchema reads an HHFR Schema.
func parseSchema(name string, text []byte) (*schema.Schema, error) {
	s, err := schema.Parse(text)
	if err != nil {
		return nil, exit.Withf(exit.Malformed,
			"the HHFR Schema dialect is described in docs/negotiation.md, section 8", "%s: %w", name, err)
	}
	return s, nil
}

// Unread is why there is no description; hint: what one is.
func Unread(err error, hint string) error {
	var malformed *xsd.Problem
	var unreachable *net.OpError
	switch {
	case errors.As(err, &malformed):
		return exit.With(exit.Malformed, err, hint)
	case errors.As(err, &unreachable):
		return exit.With(exit.NoPeer, err, exit.UnreachableHint(err))
	}
	return err
}

// dialectRoot finds that a file is an HHFR Schema: it begins with a declaration, not with a schema.
// Comments end where they first can, or the beginning would reach into what is no beginning.
var dialectRoot = regexp.MustCompile(
	`(?s)^(?:\xEF\xBB\xBF)?\s*(?:<\?[^>]*\?>\s*|<!--(?:[^-]|-[^-])*-->\s*)*<(?:[\w.-]+:)?(?:element|header)[\s>]`,
)

// ReadDialect reads a file that is an HHFR Schema; nil: it is none.
func ReadDialect(file string) (*schema.Schema, error) {
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
		return nil, nil //nolint:nilerr // whoever reads it as another description says that
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, nil //nolint:nilerr // as above
	}
	defer f.Close()
	start, err := io.ReadAll(io.LimitReader(f, schema.MaxSchema+1))
	if err != nil || !dialectRoot.Match(start) {
		return nil, nil //nolint:nilerr // as above
	}
	return ReadSchema(file)
}
