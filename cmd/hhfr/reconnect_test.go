package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/serve"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/listing"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/results"
	"github.com/hhfr/hhfr/internal/shared"
)

// mortalServer is a `hhfr serve` of its own process, to be killed.
type mortalServer struct {
	cmd          *exec.Cmd
	http, stream string
	url          string
}

func startMortal(t *testing.T, http, stream, store string, more ...string) *mortalServer {
	t.Helper()
	s := &mortalServer{cmd: exec.CommandContext(t.Context(), "hhfr",
		append([]string{"serve", "--listen", http, "--tcp", stream, "--store", store, "-o", "json", "-q"}, more...)...)}
	var errs bytes.Buffer
	s.cmd.Stderr = &errs
	out, err := s.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	t.Cleanup(s.kill)
	line, err := bufio.NewReader(out).ReadBytes('\n')
	require.NoError(t, err, &errs)
	var said struct {
		Addresses map[string]string
		Services  map[string]serve.ServiceLine
	}
	require.NoError(t, json.Unmarshal(line, &said))
	s.url, s.stream = said.Services["echo"].URL, said.Addresses["tcp"]
	u, err := url.Parse(s.url)
	require.NoError(t, err)
	s.http = u.Host
	return s
}

// kill sends SIGKILL, and waits until the process is gone.
func (s *mortalServer) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// killedRun is a run of hhfr stream against a server that is killed during the run, and restarted
// on the same ports and store.
type killedRun struct {
	messages  int
	kills     []int  // number of outcomes at each kill of the server
	misbehave string // of all servers but the last
	atOnce    int
	ordered   bool
}

// outcome is a line of hhfr stream -o json.
type outcome struct {
	Number  int
	Fate    string
	Status  int
	Body    []byte `json:"body_base64"`
	Summary *results.RunSummary
}

// run returns the numbers of messages of unknown fate. Each message has one outcome; the recording
// of the client shows that each was sent once, and that those of unknown fate are exactly those
// without a reply.
func (k killedRun) run(t *testing.T) (unknown []int) {
	dir := t.TempDir()
	store := filepath.Join(dir, "store")
	var more []string
	if k.misbehave != "" {
		more = []string{"--misbehave", k.misbehave}
	}
	server := startMortal(t, shared.Addr(t), shared.Addr(t), store, more...)
	recording := filepath.Join(dir, "client.pcapng")
	args := []string{"stream", server.url, "-o", "json", "--mode", "explicit", "--concurrency", strconv.Itoa(k.atOnce),
		"--reconnect", "2m", "--timeout", "5m", "--record", recording, "--ordered=" + strconv.FormatBool(k.ordered)}
	for i := range k.messages {
		name := filepath.Join(dir, strconv.Itoa(i+1)+".xml")
		require.NoError(t, os.WriteFile(name, []byte(envelope(i+1)), 0o600))
		args = append(args, name)
	}
	client := exec.CommandContext(t.Context(), "hhfr", args...)
	stdout, err := client.StdoutPipe()
	require.NoError(t, err)
	var errs bytes.Buffer
	client.Stderr = &errs
	require.NoError(t, client.Start())
	seen := 0
	var last *results.RunSummary
	kills := k.kills
	for lines := json.NewDecoder(stdout); ; {
		var l outcome
		if err := lines.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err, &errs)
		}
		if l.Summary != nil {
			last = l.Summary
			continue
		}
		seen++
		require.Equal(t, seen, l.Number, "one outcome for each, in sending order")
		if l.Fate != "" {
			assert.Equal(t, "unknown", l.Fate)
			unknown = append(unknown, l.Number)
		} else {
			assert.Equal(t, 200, l.Status)
			assert.Equal(t, envelope(l.Number), string(l.Body), "nothing is answered wrongly")
		}
		if len(kills) > 0 && seen == kills[0] {
			server.kill()
			if kills = kills[1:]; len(kills) == 0 {
				more = nil
			}
			server = startMortal(t, server.http, server.stream, store, more...)
		}
	}
	ended := client.Wait()
	require.NotNil(t, last, &errs)
	assert.Equal(t, k.messages, seen)
	assert.Equal(t, k.messages-len(unknown), last.Messages)
	assert.True(t, last.HHFR)
	assert.Empty(t, last.Why, "the run ends on a stream")
	assert.LessOrEqual(t, len(unknown), k.atOnce*len(k.kills))
	code := exit.Done
	if len(unknown) > 0 {
		assert.Equal(t, unknown, last.Unknown)
		assert.Contains(t, errs.String(), "unknown: written, not answered, and not sent again")
		code = exit.Partial
	} else {
		assert.Empty(t, last.Unknown)
	}
	assert.Equal(t, code, client.ProcessState.ExitCode(), "%v\n%s", ended, &errs)
	k.compare(t, recording, unknown)
	return unknown
}

// compare compares what the client printed with the bytes that it wrote and read.
func (k killedRun) compare(t *testing.T, recording string, unknown []int) {
	_, stdout, stderr := do(t, "decode", recording, "-o", "json", "--lenient")
	var r listing.DecodeReport
	require.NoError(t, json.Unmarshal([]byte(stdout), &r), stderr)
	numbers := map[string]int{}
	for i := range k.messages {
		numbers[envelope(i+1)] = i + 1
	}
	type exchange struct{ listed, place uint64 }
	sent, answered := map[exchange]int{}, map[int]bool{} // with a place: by its number
	times := map[int]int{}
	for _, m := range r.Messages {
		n := numbers[string(m.Body)]
		switch {
		case m.Session == "-" && (m.Kind != "request" || n == 0): // requests for streams, and their answers
		case m.Kind == "request":
			require.Positive(t, n, "%+v", m)
			sent[exchange{listed: uint64(m.Number)}] = n
			times[n]++
		case m.Place != nil && m.Place.Wanted:
			require.Positive(t, n, "%+v", m)
			assert.EqualValues(t, n, m.Place.Number)
			sent[exchange{place: m.Place.Number}] = n
			times[n]++
		}
	}
	for _, m := range r.Messages {
		if (m.Session != "-" || numbers[string(m.Body)] > 0) && m.State != "incomplete" &&
			(m.Kind == "reply" || m.Place != nil && m.Place.Answers > 0) {
			to := exchange{listed: uint64(m.Number)}
			if m.Place != nil {
				to = exchange{place: m.Place.Answers}
			}
			n := sent[to]
			assert.Equal(t, envelope(n), string(m.Body))
			answered[n] = true
		}
	}
	var without []int
	for n := 1; n <= k.messages; n++ {
		// a message that was handed to a connection already broken counts as written
		if times[n] != 0 || !slices.Contains(unknown, n) {
			assert.Equal(t, 1, times[n], "how often message %d was sent", n)
		}
		if !answered[n] {
			without = append(without, n)
		}
	}
	if k.ordered { // a reply may have come too late to be read
		assert.Subset(t, unknown, without, "those without a reply are of unknown fate")
	} else {
		assert.Equal(t, without, unknown, "those without a reply are those of unknown fate")
	}
	assert.Greater(t, len(r.Streams), 1, "a stream again") // a server may be killed before anybody reached it
}

// The server is killed during the run and restarted on the same store: stream negotiates anew,
// sends what was not yet sent, lists messages of unknown fate and ends with 5.
func TestServerKilledInMidRun(t *testing.T) {
	t.Parallel()
	// The first server answers slowly, so that something is always in progress, and much is left
	// when it is killed.
	var unknown []int
	for range 5 { // the moment may be the one between replies and what is sent behind them
		unknown = killedRun{messages: 400, kills: []int{50}, misbehave: "slow=300ms", atOnce: 16}.run(t)
		if len(unknown) > 0 {
			break
		}
	}
	assert.NotEmpty(t, unknown)
}

// In order, the same holds: nothing is sent again, and what was not sent is sent.
func TestServerKilledInMidRunInOrder(t *testing.T) {
	t.Parallel()
	unknown := killedRun{messages: 120, kills: []int{20}, misbehave: "slow=50ms", atOnce: 16, ordered: true}.run(t)
	assert.NotEmpty(t, unknown)
}

// A listener survives the end of its server, and prints what the next one sends.
func TestListenOverReconnection(t *testing.T) {
	t.Parallel()
	store := filepath.Join(t.TempDir(), "store")
	server := startMortal(t, shared.Addr(t), shared.Addr(t), store)
	client := exec.CommandContext(t.Context(), "hhfr", "stream", strings.TrimSuffix(server.url, "echo")+"ticker",
		"--listen", "-o", "json", "--reconnect", "2m", "--timeout", "5m")
	stdout, err := client.StdoutPipe()
	require.NoError(t, err)
	var errs bytes.Buffer
	client.Stderr = &errs
	require.NoError(t, client.Start())
	lines := json.NewDecoder(stdout)
	tick := func() (number int) {
		var l results.ServerMessage
		require.NoError(t, lines.Decode(&l), &errs)
		assert.Contains(t, string(l.Body), "<number>")
		return l.Initiated
	}
	assert.Equal(t, 1, tick())
	server.kill()
	startMortal(t, server.http, server.stream, store)
	for n := 2; n < 4; n++ { // one may have been in transit
		assert.Equal(t, n, tick())
	}
	require.NoError(t, client.Process.Signal(os.Interrupt))
	for err == nil { // more ticks, and the summary
		err = lines.Decode(&struct{}{})
	}
	require.ErrorIs(t, err, io.EOF)
	require.EqualError(t, client.Wait(), "exit status 130", &errs)
}

func envelope(number int) string {
	return fmt.Sprintf(`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><m:op `+
		`xmlns:m="urn:m"><n>%d</n></m:op></s:Body></s:Envelope>`, number)
}
