package call

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/input"
	"github.com/hhfr/hhfr/internal/values"
	"github.com/hhfr/hhfr/internal/xsd"
)

// maxInput bounds the values of one call, in bytes.
const maxInput = 64 << 20

const inputHint = "values are KEY=VALUE, KEY:=JSON, one JSON object, @FILE, or - for stdin"

// inputs yields the values of each call; lines: they come from stdin, and each call is a line of
// stdout.
func inputs(
	ctx context.Context, g *command.Global, args []string,
) (calls iter.Seq2[*values.JSON, error], lines bool, err error) {
	if len(args) == 1 && args[0] == "-" {
		in, err := input.Open(ctx, g, "-", "values in JSON")
		if err != nil {
			return nil, false, err
		}
		return func(yield func(*values.JSON, error) bool) {
			for v, err := range values.ParseJSONValues("stdin", in, maxInput) {
				if !yield(v, described(err)) {
					return
				}
			}
		}, true, nil
	}
	v, err := inputOf(args)
	if err != nil {
		return nil, false, err
	}
	return func(yield func(*values.JSON, error) bool) { yield(v, nil) }, false, nil
}

// inputOf reads the values that arguments say.
func inputOf(args []string) (*values.JSON, error) {
	if len(args) == 1 {
		_, _, attribute := cutKey(args[0])
		if file, ok := strings.CutPrefix(args[0], "@"); ok && !attribute {
			text, err := readInput(file)
			if err != nil {
				return nil, err
			}
			return parse(file, text)
		}
		if text := strings.TrimSpace(args[0]); strings.HasPrefix(text, "{") && strings.HasSuffix(text, "}") {
			return parse("JSON", []byte(text))
		}
	}
	v := &values.JSON{Kind: values.Object, Place: xsd.Position{Location: "the arguments"}}
	for _, arg := range args {
		key, text, ok := cutKey(arg)
		if !ok {
			return nil, exit.Usagef(inputHint, "%q is no KEY=VALUE", arg)
		}
		value := &values.JSON{Kind: values.Loose, Text: text, Place: xsd.Position{Location: arg}}
		if before, ok := strings.CutSuffix(key, ":"); ok {
			parsed, err := parse(key+"=", []byte(text))
			if err != nil {
				return nil, err
			}
			key, value = before, parsed
		}
		if err := v.Assign(key, value); err != nil {
			return nil, exit.Usagef(inputHint, "%s: %w", arg, err)
		}
	}
	return v, nil
}

// cutKey cuts an argument behind its key, in whose namespaces = may stand.
func cutKey(arg string) (key, value string, ok bool) {
	inside := 0
	for i, c := range arg {
		switch {
		case c == '{':
			inside++
		case c == '}':
			inside--
		case c == '=' && inside == 0:
			return arg[:i], arg[i+1:], i > 0
		}
	}
	return "", "", false
}

func readInput(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxInput+1))
	if err = errors.Join(err, f.Close()); err == nil && len(text) > maxInput {
		err = fmt.Errorf("%s has more than %d bytes", file, maxInput)
	}
	return text, err
}

// xmlDeclaration is what may stand before a header block in a file, and not in an envelope.
var xmlDeclaration = regexp.MustCompile(`^(?:\xEF\xBB\xBF)?\s*(?:<\?xml\s[^>]*\?>)?\s*`)

// headerBlocks reads the files of --soap-header.
func headerBlocks(files []string) (string, error) {
	var all strings.Builder
	for _, name := range files {
		text, err := readInput(name)
		if err != nil {
			return "", fmt.Errorf("--soap-header: %w", err)
		}
		if _, err = xsd.ParseMessage(name, text); err == nil && !utf8.Valid(text) {
			err = fmt.Errorf("%s is not in UTF-8", name)
		}
		if err != nil {
			return "", exit.Withf(exit.Malformed, "one element in UTF-8 that declares its own prefixes",
				"--soap-header: %w", err)
		}
		all.Write(bytes.TrimSpace(xmlDeclaration.ReplaceAll(text, nil)))
	}
	return all.String(), nil
}

func parse(location string, text []byte) (*values.JSON, error) {
	v, err := values.ParseJSON(location, text)
	return v, described(err)
}

// described is an error of JSON that is not as it has to be; others are as they are.
func described(err error) error {
	var wrong *xsd.Problem
	if errors.As(err, &wrong) {
		return exit.With(exit.Malformed, err, "docs/values.md says how messages are JSON")
	}
	return err
}
