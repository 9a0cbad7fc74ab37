package call

import (
	"bufio"
	"bytes"
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
	"github.com/hhfr/hhfr/internal/values"
	"github.com/hhfr/hhfr/internal/xsd"
)

// maxInput bounds the values of one call, in bytes.
const maxInput = 64 << 20

const inputHint = "values are KEY=VALUE, KEY:=JSON, one JSON object, @FILE, or - for stdin"

// inputs yields the values of each call; lines: they are lines of stdin, a call each.
func inputs(g *command.Global, args []string) (calls iter.Seq2[*values.JSON, error], lines bool, err error) {
	if len(args) == 1 && args[0] == "-" {
		return valuesOfLines(g.In), true, nil
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
		if file, ok := strings.CutPrefix(args[0], "@"); ok {
			text, err := readInput(file)
			if err != nil {
				return nil, err
			}
			return parse(file, 1, text)
		}
		if text := strings.TrimSpace(args[0]); strings.HasPrefix(text, "{") && strings.HasSuffix(text, "}") {
			return parse("JSON", 1, []byte(text))
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
			parsed, err := parse(key+"=", 1, []byte(text))
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

func parse(location string, line int, text []byte) (*values.JSON, error) {
	v, err := values.ParseJSONLine(location, line, text)
	if err != nil {
		return nil, exit.With(exit.Malformed, err, "docs/values.md says how messages are JSON")
	}
	return v, nil
}

// valuesOfLines yields a value for each line that is not empty.
func valuesOfLines(in io.Reader) iter.Seq2[*values.JSON, error] {
	return func(yield func(*values.JSON, error) bool) {
		lines := bufio.NewScanner(in)
		lines.Buffer(nil, maxInput)
		n := 0
		for lines.Scan() {
			n++
			line := bytes.TrimSpace(lines.Bytes())
			if len(line) == 0 {
				continue
			}
			v, err := parse("stdin", n, line)
			if !yield(v, err) || err != nil {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(nil, fmt.Errorf("stdin, line %d: %w", n+1, err))
		}
	}
}
