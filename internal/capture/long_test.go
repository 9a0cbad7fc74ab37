package capture_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/pcap"
	"github.com/hhfr/hhfr/internal/shared"
)

// longPlain is a capture of calls in plain SOAP, longer than what is surveyed before it is given.
func longPlain(t *testing.T, calls int) []byte {
	t.Helper()
	var messages [][2]string
	for n := range calls {
		messages = append(messages, [2]string{"text/xml",
			envelope("op", "", fmt.Sprintf("<n>%d</n>%s", n, strings.Repeat("<more/>", 10_000)))})
	}
	return exchanged(t, messages...)
}

// inShort is what a reader gives of inputs, a line for each event.
func inShort(t *testing.T, cfg capture.DecodeConfig, inputs ...[]byte) (lines []string) {
	t.Helper()
	var readers []io.Reader
	for _, in := range inputs {
		readers = append(readers, bytes.NewReader(in))
	}
	all, sum := events(t, cfg, readers...)
	for _, ev := range all {
		m := ev.Message
		require.NotNil(t, m, "final states need no checks")
		lines = append(lines, fmt.Sprintln(m.Number, m.HHFR, m.Stream, m.Direction, m.Index, m.Exchange, m.Reply,
			m.State, m.Why, m.First, m.Wire, m.Operation, m.BodyOctets, string(m.Body[:min(200, len(m.Body))])))
	}
	return append(lines, fmt.Sprint(sum.Counts(), sum.Stats, sum.Others, len(sum.Streams)))
}

// TestLongInputsAreReadOnce: of a long capture of plain SOAP each message is given as it is read;
// where a stream, TLS, or what belongs to either comes later, all is as it is with a survey before.
func TestLongInputsAreReadOnce(t *testing.T) {
	plain := longPlain(t, 80)
	require.Greater(t, len(plain), 10<<20)
	surveyed := capture.DecodeConfig{Octets: func(int, int, int64, []byte) error { return nil }}
	stream := record(t, mixed(t), 2048).file
	secret, keys := secretCalls(t, false, asking("1"), asking("2"))
	theirKeys := pcap.AppendSecrets(pcap.AppendHead(nil, "hhfr", "hhfr", pcap.LinkRaw), keys)
	for name, behind := range map[string][][]byte{
		"TLS, and its keys behind": {slices.Concat(plain, secret, longPlain(t, 3), theirKeys)},
		"TLS without keys":         {slices.Concat(plain, secret, longPlain(t, 3))},
		"nothing":                  {plain},
		"a stream":                 {slices.Concat(plain, stream)},
		"a stream between":         {slices.Concat(plain, stream, longPlain(t, 3))},
		"a damaged stream":         {slices.Concat(plain, stream[:len(stream)/2])},
		"datagrams":                {plain, shared.Read(t, shared.Testdata(t, "pcap", "datagrams.pcap"))},
		"an early stream":          {plain, shared.Read(t, shared.Testdata(t, "pcap", "early.pcap"))},
		"an upgrade":               {plain, shared.Read(t, shared.Testdata(t, "pcap", "upgraded.pcapng"))},
	} {
		want := inShort(t, surveyed, behind...)
		assert.Greater(t, len(want), 30, name) // the upgrade has the address of the calls
		assert.Equal(t, want, inShort(t, capture.DecodeConfig{}, behind...), name)
	}
}

// countedReads is an input that knows how much of it was read.
type countedReads struct {
	*bytes.Reader
	read int
}

func (c *countedReads) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.read += n
	return n, err
}

// TestFirstMessageOfALongInput: it is given long before all was read, and all is read once.
func TestFirstMessageOfALongInput(t *testing.T) {
	file := longPlain(t, 160)
	in := &countedReads{Reader: bytes.NewReader(file)}
	r := capture.NewReader(t.Context(), capture.DecodeConfig{})
	first := 0
	for _, err := range r.Captures(t.Context(), capture.Input{Octets: in}) {
		require.NoError(t, err)
		if first == 0 {
			first = in.read
		}
	}
	assert.Less(t, first, len(file)/3)
	assert.Less(t, in.read, len(file)*4/3)
}

// TestFirstMessagesOfALongStream: what the beginning of a long capture says of the messages there
// is enough for them; all are as they are with a survey of all of it before.
func TestFirstMessagesOfALongStream(t *testing.T) {
	from := rand.NewChaCha8([32]byte{9})
	var messages [][]byte
	for range 400 {
		random := make([]byte, 10<<10)
		_, _ = from.Read(random)
		messages = append(messages, []byte(envelope("op", "", "<n>"+hex.EncodeToString(random)+"</n>")))
	}
	stream, late := record(t, messages, 64<<10).file, record(t, messages, 0).file
	short := record(t, mixed(t), 2048).file
	plain := longPlain(t, 90)
	surveyed := capture.DecodeConfig{Octets: func(int, int, int64, []byte) error { return nil }}
	for name, c := range map[string]struct {
		file []byte
		most int // bytes before the first message, in times of the beginning
	}{
		"a stream":             {slices.Concat(stream, plain), 3},
		"a stream that is cut": {slices.Concat(stream[:len(stream)*9/10], plain), 3},
		"many recordings":      {bytes.Repeat(short, 1+(12<<20)/len(short)), 3},
		"behind plain SOAP":    {slices.Concat(plain, stream), 3},
		"without checks":       {slices.Concat(late, plain), 9},
	} {
		in := &countedReads{Reader: bytes.NewReader(c.file)}
		r := capture.NewReader(t.Context(), capture.DecodeConfig{})
		for _, err := range r.Captures(t.Context(), capture.Input{Octets: in}) {
			require.NoError(t, err)
			break
		}
		assert.LessOrEqual(t, in.read, c.most<<21, name)
		require.Greater(t, len(c.file), 12<<20, "the test shows nothing")
		assert.Equal(t, inShort(t, surveyed, c.file), inShort(t, capture.DecodeConfig{}, c.file), name)
	}
}
