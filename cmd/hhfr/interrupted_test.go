package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
		"decode": {decode, capture, exitInterrupted,
			` reply +PullMessagesResponse .* unverified\n(.*\n)*verified: 3 messages of .*, numbers 14 to 16\n`},
		"decode, nothing": {[]string{"decode", "-"}, nil, exitInterrupted, "^$"},
		"decode, leniently": {append(decode, "--lenient"), capture, exitInterrupted,
			` reply +PullMessagesResponse .* unverified\n(.*\n)*verified: 3 messages of .*, numbers 14 to 16\n`},
		"transcode": {[]string{"transcode", "-", "--out", filepath.Join(t.TempDir(), "packed.hhfr")}, messages,
			exitInterrupted, "^$"},
		"reconstruct": {[]string{"reconstruct", "-"}, messages, exitInterrupted, "^$"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			over := make(chan struct{})
			defer close(over)
			var out, errs bytes.Buffer
			in := unending{bytes.NewReader(tc.octets), func() { cancel(signalled{os.Interrupt}) }, over}
			code := execute(ctx, Env{In: in, Out: &out, Err: &errs}, tc.args)
			require.Equal(t, tc.code, code, "%s", &errs)
			assert.Regexp(t, tc.out, out.String())
			if code == exitInterrupted {
				assert.Regexp(t, "hhfr: error: .*interrupt signal received", errs.String())
				assert.NotContains(t, errs.String(), "not a capture")
			}
		})
	}
}
