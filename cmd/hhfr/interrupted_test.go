package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/decoding"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/input"
	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/codec/fastinfoset"
	"github.com/hhfr/hhfr/internal/shared"
)

// unending is an input without an end; a read at its end shows that all bytes were read.
type unending struct {
	octets *bytes.Reader
	asked  func()
	over   <-chan struct{}
}

func (u unending) Read(p []byte) (int, error) {
	if u.octets.Len() == 0 {
		u.asked()
		<-u.over
		return 0, io.EOF
	}
	return u.octets.Read(p)
}

// Commands that print nothing before the end of their input: Ctrl-C is that end, and what arrived
// before it counts.
func TestInterruptedWithinTheInput(t *testing.T) {
	capture := shared.Read(t, shared.Testdata(t, "pcap", "session.pcapng"))
	decode := []string{"decode", "-", "--store", shared.Testdata(t, "pcap", "store")}
	messages := []byte("<a>1</a><b>2</b><c")
	for name, tc := range map[string]struct {
		args   []string
		octets []byte
		code   int
		out    string
	}{
		"decode": {decode, capture, exit.Interrupted,
			` reply +PullMessagesResponse .* unverified\n(.*\n)*verified: 3 messages of .*, numbers 14 to 16\n`},
		"decode, nothing": {[]string{"decode", "-"}, nil, exit.Interrupted, "^$"},
		"decode, leniently": {append(decode, "--lenient"), capture, exit.Interrupted,
			` reply +PullMessagesResponse .* unverified\n(.*\n)*verified: 3 messages of .*, numbers 14 to 16\n`},
		"estimate":          {[]string{"estimate", "-"}, capture, exit.Interrupted, "^$"},
		"estimate, nothing": {[]string{"estimate", "-"}, nil, exit.Interrupted, "^$"},
		"transcode": {[]string{"transcode", "-", "--out", filepath.Join(t.TempDir(), "packed.hhfr")}, messages,
			exit.Interrupted, "^$"},
		"reconstruct": {[]string{"reconstruct", "-"}, messages, exit.Interrupted, "^$"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			over := make(chan struct{})
			defer close(over)
			var out, errs bytes.Buffer
			in := unending{bytes.NewReader(tc.octets), func() { cancel(exit.Signalled{Signal: os.Interrupt}) }, over}
			code := execute(ctx, command.Env{In: in, Out: &out, Err: &errs}, tc.args)
			require.Equal(t, tc.code, code, "%s", &errs)
			assert.Regexp(t, tc.out, out.String())
			if code == exit.Interrupted {
				assert.Regexp(t, "hhfr: error: .*interrupt signal received", errs.String())
				assert.NotContains(t, errs.String(), "not a capture")
			}
		})
	}
}

// cutShort is a file of which few bytes are read at once. It calls interrupt behind so many.
type cutShort struct {
	io.ReadSeeker
	left      int
	interrupt func()
}

func (c *cutShort) Read(p []byte) (int, error) {
	n, err := c.ReadSeeker.Read(p[:min(len(p), 256)])
	if c.left -= n; c.left <= 0 {
		c.interrupt()
	}
	return n, err
}

// A file is read twice. Ctrl-C ends it where it was read up to, in whichever pass, and what is
// before that is listed.
func TestInterruptedWithinAFile(t *testing.T) {
	name := shared.Testdata(t, "pcap", "session.pcapng")
	size := len(shared.Read(t, name))
	for pass, read := range map[string]int{"first": size * 2 / 3, "second": size + size*2/3} {
		for _, output := range []string{"text", "json", "jsonl"} {
			t.Run(pass+" "+output, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				var out, errs bytes.Buffer
				g := &command.Global{Env: command.Env{Out: &out, Err: &errs}, Stderr: &errs}
				o := decoding.DecodeOptions{Files: []string{name}, Output: output}
				in, err := input.OpenSources(ctx, g, o.Files, "a capture", output == "json")
				require.NoError(t, err)
				in.List[0].Octets = &cutShort{in.List[0].Octets.(io.ReadSeeker), read,
					func() { cancel(exit.Signalled{Signal: os.Interrupt}) }}
				r := capture.NewReader(t.Context(), capture.DecodeConfig{})
				err = decoding.Present(ctx, g, o, r, r.Captures(t.Context(), in.List...))
				code, _ := exit.CodeOf(err)
				assert.Equal(t, exit.Interrupted, code)
				require.ErrorIs(t, err, context.Canceled)
				n := strings.Count(out.String(), "PullMessagesResponse")
				assert.Positive(t, n, "%s%s", &out, &errs)
				assert.Less(t, n, 16)
				require.NoError(t, in.Close())
			})
		}
	}
}

// telling calls then once it has got some text.
type telling struct {
	bytes.Buffer
	text string
	then func()
}

func (w *telling) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if strings.Contains(w.String(), w.text) {
		w.then()
	}
	return n, err
}

// A short document of Fast Infoset has a long text: Ctrl-C ends what is made of it.
func TestInterruptedWithinFastInfoset(t *testing.T) {
	text := "<r>" + strings.Repeat("<begin>some text</begin>", 100_000) + "</r>"
	doc, err := new(fastinfoset.InfosetWriter).FromXML(nil, []byte(text))
	require.NoError(t, err)
	for to, told := range map[string]string{"xml": "<begin>", "stream": "begin"} {
		name := filepath.Join(t.TempDir(), "message.finf")
		require.NoError(t, os.WriteFile(name, doc, 0o600))
		ctx, cancel := context.WithCancelCause(t.Context())
		out := &telling{text: told, then: func() { cancel(exit.Signalled{Signal: os.Interrupt}) }}
		var errs bytes.Buffer
		code := execute(ctx, command.Env{Out: struct{ io.Writer }{out}, Err: &errs},
			[]string{"transcode", name, "--from", "fastinfoset", "--to", to, "--out", "-"})
		assert.Equal(t, exit.Interrupted, code, to)
		assert.Contains(t, errs.String(), "interrupt signal received")
		assert.Less(t, out.Len(), len(text)/2, to)
	}
}

// A pipe that stays open is listed as it comes; Ctrl-C ends it, and the summary follows.
func TestInterruptedAtAPipeThatStaysOpen(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	go func() {
		_, err := w.Write(shared.Read(t, shared.Testdata(t, "pcap", "session.pcapng")))
		assert.NoError(t, err)
	}()
	ctx, cancel := context.WithCancelCause(t.Context())
	out := &telling{text: "numbers 14 to 16\n", then: func() { cancel(exit.Signalled{Signal: os.Interrupt}) }}
	var errs bytes.Buffer
	code := execute(ctx, command.Env{In: r, Out: out, Err: &errs}, []string{"decode", "-"})
	assert.Equal(t, exit.Interrupted, code)
	assert.Len(t, regexp.MustCompile(` unverified(, fault .*)?\n`).FindAllString(out.String(), -1), 32)
	assert.Contains(t, errs.String(), "1 stream, 34 messages, 32 verified")
	assert.Contains(t, errs.String(), "hhfr: error: interrupt signal received")
	require.NoError(t, w.Close()) // the abandoned goroutine ends now
	require.NoError(t, r.Close())
}
