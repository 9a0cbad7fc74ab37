package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/serve"
	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/soap"
)

// printedServices runs hhfr serve on free ports as long as the test, and returns what it printed,
// once as JSON and once as text.
func printedServices(t testing.TB, output string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	said := firstLine{make(chan []byte, 1)}
	done := make(chan int)
	var errs bytes.Buffer
	go func() {
		done <- execute(ctx, command.Env{Out: said, Err: &errs},
			[]string{"serve", "--listen", "127.0.0.1:0", "-o", output, "-q"})
	}()
	t.Cleanup(func() {
		cancel()
		assert.Zero(t, <-done, &errs)
	})
	return string(<-said.lines)
}

// operations are the services' answers to the lines that serve prints.
var operations = map[string]string{
	"blob": "blobResponse", "concat": "concatResponse", "echo": "hello", "geoip": "geoipResponse",
	"ledger": "addResponse", "records": "recordsResponse", "sum": "sumResponse", "ticker": "tickerResponse",
}

// printedCurls are the curl lines of serve by service, as printed in JSON and as text, with the
// URLs of descriptions.
func printedCurls(t testing.TB) (lines map[string][]string, descriptions map[string]string) {
	lines, descriptions = map[string][]string{}, map[string]string{}
	var said struct{ Services map[string]serve.ServiceLine }
	require.NoError(t, json.Unmarshal([]byte(printedServices(t, "json")), &said))
	for name, l := range said.Services {
		lines[name] = append(lines[name], l.Curl)
		if l.WSDL != "" {
			descriptions[l.URL] = l.WSDL
		}
	}
	for line := range strings.Lines(printedServices(t, "text")) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "curl ") {
			name := line[strings.LastIndexByte(line, '/')+1:]
			lines[name] = append(lines[name], line)
		}
	}
	require.Len(t, lines, len(operations))
	require.Len(t, descriptions, len(operations)-1, "all but echo")
	return lines, descriptions
}

// TestCurlLines: every service answers the line that serve prints for it. The lines are parsed as a
// shell and curl would.
func TestCurlLines(t *testing.T) {
	lines, descriptions := printedCurls(t)
	for name, two := range lines {
		require.Len(t, two, 2, name)
		for _, line := range two {
			out := curl(t, words(t, line)...)
			assert.Equal(t, operations[name], soap.Recognize(out).Operation.Local, "%s\n%s", line, out)
			assert.False(t, soap.Recognize(out).Fault, "%s\n%s", line, out)
		}
	}
	for url, wsdl := range descriptions {
		assert.Contains(t, string(curl(t, "curl", "-s", wsdl)), `location="`+url+`"`)
	}
}

// TestExtensionsOfDescriptions: no element that a description of serve has beside those of WSDL and
// of its SOAP binding bears a local name of theirs. Some clients go by local names alone, and find
// no operation in a binding with a further element binding (WSDL 1.1, sections 1.2 and 3).
func TestExtensionsOfDescriptions(t *testing.T) {
	theirs := strings.Fields("definitions import documentation types message part portType operation input output " +
		"fault binding service port header headerfault body address")
	for args, declared := range map[string]int{"": 1, "--soap-rm all": 3} {
		services, stop := servicesHere(t, append(strings.Fields(args), "--context", "loopback", "--store", "mem:")...)
		defer stop()
		descriptions := 0
		for name, service := range services {
			if service.WSDL == "" {
				continue
			}
			descriptions++
			text := curl(t, "curl", "-s", service.WSDL)
			extensions := 0
			for r := xml.NewDecoder(bytes.NewReader(text)); ; {
				token, err := r.Token()
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err, name)
				start, ok := token.(xml.StartElement)
				if !ok {
					continue
				}
				switch start.Name.Space {
				case xmlns.WSDL, xmlns.WSDLSOAP11, xmlns.WSDLSOAP12:
				case xmlns.XSD:
					require.NoError(t, r.Skip(), "a schema has its own names")
				default:
					extensions++
					assert.NotContains(t, theirs, start.Name.Local, "%s: %s", name, start.Name.Space)
				}
			}
			assert.GreaterOrEqual(t, extensions, 2*declared, "%s %s: annotations in two bindings", name, args)
		}
		assert.Equal(t, len(operations), descriptions, "all but echo, and the context service")
	}
}

// words splits a line as a shell does: at blanks outside single quotes. Any other special character
// of a shell is a failure.
func words(t testing.TB, line string) (list []string) {
	var word strings.Builder
	begun := false
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			word.WriteString(part)
			begun = true
			continue
		}
		require.NotRegexp(t, "[\"$`\\\\<>|&;()*?!#~\\[{]", part)
		for j, piece := range strings.Split(part, " ") {
			if j > 0 && (begun || word.Len() > 0) {
				list = append(list, word.String())
				word.Reset()
				begun = false
			}
			word.WriteString(piece)
		}
	}
	return append(list, word.String())
}

// curl does what the program does with the options that serve uses.
func curl(t testing.TB, args ...string) []byte {
	require.Equal(t, "curl", args[0])
	method, url, body, fields := http.MethodGet, "", "", [][2]string{}
	for i := 1; i < len(args); i++ {
		switch args[i] {
		case "-s":
		case "-H":
			i++
			name, value, ok := strings.Cut(args[i], ": ")
			require.True(t, ok, args[i])
			fields = append(fields, [2]string{name, value})
		case "--data-binary":
			i++
			method, body = http.MethodPost, args[i]
			require.NotEqual(t, byte('@'), body[0])
		default:
			require.Empty(t, url)
			require.NotEqual(t, byte('-'), args[i][0])
			url = args[i]
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	for _, f := range fields {
		req.Header.Set(f[0], f[1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return out
}
