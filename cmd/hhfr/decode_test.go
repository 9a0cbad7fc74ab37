package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/listing"
	"github.com/hhfr/hhfr/internal/shared"
)

// A growing capture is listed meanwhile: a row when its message is whole, and a line for each
// check.
func TestRowsBeforeTheEnd(t *testing.T) {
	file := shared.Read(t, shared.Testdata(t, "pcap", "session.pcapng"))
	for output, expect := range map[string][3]string{
		"text": {`^     2 .* request +GetForecastResponse .* unverified$`,
			`^verified: \d+ messages? of .*, numbers? 2`, ` Fault .* unverified$`},
		"jsonl": {`^\{"number":2,.*"kind":"request",.*"state":"unverified"`,
			`^\{"check":"verified",.*"direction":"out","from":2,"to":2,"messages":1\}$`,
			`"index":16,.*"state":"unverified"`},
		"xml": {`GetForecastResponse`, `</`, `Fault`},
	} {
		t.Run(output, func(t *testing.T) {
			in, grow := io.Pipe()
			rows, out := io.Pipe()
			ended := make(chan int, 1)
			var errs bytes.Buffer
			go func() {
				args := []string{"decode", "-", "-q", "-o", output}
				to, toErr := keeping(args, out, &errs)
				ended <- execute(t.Context(), command.Env{In: in, Out: to, Err: toErr}, args)
				_ = out.Close()
			}()
			lines := bufio.NewScanner(rows)
			lines.Buffer(nil, 1<<20)
			until := func(pattern string) {
				re := regexp.MustCompile(pattern)
				for lines.Scan() {
					if re.MatchString(lines.Text()) {
						return
					}
				}
				assert.Fail(t, "the end comes before", pattern)
			}
			const half = 12000 // of the bytes: the requests
			go func() { _, _ = grow.Write(file[:half]) }()
			until(expect[0])
			until(expect[1])
			select {
			case code := <-ended:
				require.Fail(t, "it ended", "exit code %d", code)
			default:
			}
			go func() {
				_, _ = grow.Write(file[half:])
				_ = grow.Close()
			}()
			until(expect[2])
			_, _ = io.Copy(io.Discard, rows)
			require.Equal(t, exit.Done, <-ended, "%s", &errs)
		})
	}
}

// One object has the final states, for every kind of input.
func TestReportFromAPipe(t *testing.T) {
	file := shared.Testdata(t, "pcap", "session.pcapng")
	code, want, stderr := do(t, "decode", file, "-o", "json")
	require.Equal(t, exit.Done, code, stderr)
	var out, errs bytes.Buffer
	require.Equal(t, exit.Done, execute(t.Context(),
		command.Env{In: bytes.NewReader(shared.Read(t, file)), Out: &out, Err: &errs}, []string{"decode", "-", "-o",
			"json"}),
		&errs)
	assert.Equal(t, want, out.String())
	var r listing.DecodeReport
	require.NoError(t, json.Unmarshal(out.Bytes(), &r))
	assert.Len(t, r.Messages, 34)
	assert.NotContains(t, out.String(), "unverified")
}

// A withdrawn message is marked in its row, or in a line after it; its file has another name, and
// the exit code counts it.
func TestWithdrawnMessages(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(at("1.txt"), []byte("<a>first</a>"), 0o600))
	code, _, stderr := do(t, "transcode", at("1.txt"), "--out", at("packed.hhfr"), "--without", "columns,memory,zstd",
		"-q")
	require.Equal(t, exit.Done, code, stderr)
	octets := shared.Read(t, at("packed.hhfr"))
	where := bytes.LastIndex(octets, []byte("first"))
	require.Positive(t, where)
	octets[where] = 'F'
	require.NoError(t, os.WriteFile(at("damaged.hhfr"), octets, 0o600))

	code, out, _ := do(t, "reconstruct", at("damaged.hhfr"), "--save-dir", at("file"))
	assert.Equal(t, exit.Partial, code)
	assert.Regexp(t, ` one-way .* withdrawn: its check is wrong\n`, out)
	var rows, errs bytes.Buffer
	code = execute(t.Context(), command.Env{In: bytes.NewReader(octets), Out: &rows, Err: &errs},
		[]string{"reconstruct", "-", "--save-dir", at("pipe")})
	assert.Equal(t, exit.Partial, code)
	assert.Regexp(t, ` one-way .* unverified\nwithdrawn: 1 message of session [0-9a-f]{8}, number 1\n`, rows.String())
	assert.Contains(t, errs.String(), "1 withdrawn")
	for _, from := range []string{"file", "pipe"} {
		files, err := os.ReadDir(at(from))
		require.NoError(t, err)
		require.Len(t, files, 1)
		assert.Equal(t, "000001-request.xml.withdrawn", files[0].Name())
		assert.Equal(t, "<a>First</a>", string(shared.Read(t, filepath.Join(at(from), files[0].Name()))))
	}
}

// Two captures make one list.
func TestDecodeSeveral(t *testing.T) {
	session, datagrams := shared.Testdata(t, "pcap", "session.pcapng"), shared.Testdata(t, "pcap", "datagrams.pcap")
	code, out, stderr := do(t, "decode", session, datagrams)
	require.Equal(t, exit.Done, code, stderr)
	assert.Contains(t, stderr, "2 streams")
	assert.Equal(t, 34+32, strings.Count(out, "\n")-1)
	code, _, stderr = do(t, "decode", session, filepath.Join(t.TempDir(), "none.pcap"))
	assert.Equal(t, exit.Failed, code)
	assert.Contains(t, stderr, "none.pcap")
	code, _, _ = do(t, "decode", "-", session, "-")
	assert.Equal(t, exit.WrongUsage, code)
}
