package main

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/internal/shared"
)

func entryMessage(number int) string {
	return fmt.Sprintf(`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><add xmlns="%s">`+
		`<id>m-%d</id><amount>%d</amount></add></s:Body></s:Envelope>`, peer.Namespace, number, number)
}

// ledgerRun is a run of hhfr stream to /ledger, exactly once and in order, in which both processes
// are killed and restarted with the same commands, the client with --resume.
type ledgerRun struct {
	transport       string // with its flags
	messages, kills int
	seed            uint64
}

// concurrency is the number of messages that a client has in progress.
const concurrency = 128

// ledgerWorld is the two processes of a run.
type ledgerWorld struct {
	ledgerRun
	t      *testing.T
	dir    string
	http   string // address of all servers, one after another
	stream string
	server *mortalServer
	client *exec.Cmd
	errs   bytes.Buffer
	lines  *bufio.Scanner // replies that the client prints
}

func (w *ledgerWorld) startServer() {
	w.server = startMortal(w.t, w.http, w.stream, "bolt:"+filepath.Join(w.dir, "server.db"), "--udp", w.stream)
}

func (w *ledgerWorld) startClient() {
	input, err := os.Open(filepath.Join(w.dir, "messages.xml"))
	require.NoError(w.t, err)
	defer input.Close()
	w.errs.Reset()
	args := []string{"stream", strings.TrimSuffix(w.server.url, "echo") + "ledger", "-", "--assurance", "exactly-once",
		"--ordered", "--resume",
		"--store", "bolt:" + filepath.Join(w.dir, "client.db"), "--reconnect", "2m", "--concurrency",
		strconv.Itoa(concurrency), "-q", "--transport"}
	w.client = exec.CommandContext(w.t.Context(), "hhfr", append(args, strings.Fields(w.transport)...)...)
	w.client.Stdin, w.client.Stderr = input, &w.errs
	out, err := w.client.StdoutPipe()
	require.NoError(w.t, err)
	require.NoError(w.t, w.client.Start())
	w.lines = bufio.NewScanner(out)
}

// kills counts the processes that had not ended by themselves.
type kills struct{ server, client int }

func (k kills) all() int { return k.server + k.client }

// run returns the number of kills: the run may end before all of them.
func (r ledgerRun) run(t *testing.T) (killed kills) {
	w := &ledgerWorld{ledgerRun: r, t: t, dir: t.TempDir(), http: shared.Addr(t), stream: shared.Addr(t)}
	var all bytes.Buffer
	for n := 1; n <= r.messages; n++ {
		all.WriteString(entryMessage(n))
		all.WriteByte('\n')
	}
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "messages.xml"), all.Bytes(), 0o600))
	rnd := rand.New(rand.NewPCG(r.seed, 0))
	// gap is the number of further replies before the next kill, sometimes none: then the kill hits
	// a process that has just begun.
	gap := func() int {
		if rnd.IntN(5) == 0 {
			return 0
		}
		// about half of the replies in all that are seen at least: what a killed process had in
		// progress is lost
		return rnd.IntN(max(1, 6*(r.messages-concurrency*r.kills)/(5*r.kills)))
	}
	w.startServer()
	w.startClient()
	next := gap()
	for {
		ended := false
		for next > 0 && !ended {
			ended = !w.lines.Scan()
			next--
		}
		if !ended && killed.all() < r.kills {
			strikeServer := rnd.IntN(2) == 0
			if killed.all() == 1 { // the first two kills are one of each process, for any seed
				strikeServer = killed.client == 1
			}
			if strikeServer {
				killed.server++
				w.server.kill()
				w.startServer()
			} else {
				require.NoError(t, w.client.Process.Kill())
				for w.lines.Scan() { // what it had printed
				}
				// otherwise it ended before
				if err := w.client.Wait(); err != nil && w.client.ProcessState.ExitCode() < 0 {
					killed.client++
				}
				w.startClient()
			}
			next = gap()
			continue
		}
		for w.lines.Scan() {
		}
		err := w.client.Wait()
		if w.client.ProcessState.ExitCode() != exit.NoPeer {
			require.NoError(t, err, "%s", &w.errs)
			break
		}
		w.startClient() // the server was killed before the two had met
	}
	w.check()
	return killed
}

var entryOf = regexp.MustCompile(`<entry><id>m-(\d+)</id><amount>(\d+)</amount></entry>`)

// check compares the ledger with what was sent: each message once, in order.
func (w *ledgerWorld) check() {
	const page = 10_000
	next := 1
	for next <= w.messages {
		request := fmt.Sprintf(`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><read `+
			`xmlns="%s"><from>%d</from><most>%d</most></read></s:Body></s:Envelope>`, peer.Namespace, next, page)
		reply, err := http.Post("http://"+w.server.http+"/ledger", "text/xml; charset=utf-8",
			strings.NewReader(request))
		require.NoError(w.t, err)
		var body bytes.Buffer
		_, err = body.ReadFrom(reply.Body)
		require.NoError(w.t, err)
		require.NoError(w.t, reply.Body.Close())
		require.Contains(w.t, body.String(), fmt.Sprintf("<count>%d</count>", w.messages))
		entries := entryOf.FindAllSubmatch(body.Bytes(), -1)
		require.NotEmpty(w.t, entries)
		for _, e := range entries {
			require.Equal(w.t, strconv.Itoa(next), string(e[1]), "the entries are the messages, in order")
			require.Equal(w.t, string(e[1]), string(e[2]))
			next++
		}
	}
	http.DefaultClient.CloseIdleConnections()
	assert.Equal(w.t, w.messages+1, next)
}

// The server dies and does not come back in time. The client ends with 5 and keeps pending
// messages; the same command sends them later.
func TestKeptMessages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := startMortal(t, shared.Addr(t), shared.Addr(t), "bolt:"+filepath.Join(dir, "server.db"))
	args := []string{"stream", strings.TrimSuffix(server.url, "echo") + "ledger", "-", "--assurance", "exactly-once",
		"--ordered", "--resume", "--store", "bolt:" + filepath.Join(dir, "client.db"), "--reconnect"}
	client := exec.CommandContext(t.Context(), "hhfr", append(args, "100ms", "--concurrency", "8")...)
	input, err := client.StdinPipe()
	require.NoError(t, err)
	out, err := client.StdoutPipe()
	require.NoError(t, err)
	var errs bytes.Buffer
	client.Stderr = &errs
	require.NoError(t, client.Start())
	_, err = fmt.Fprintln(input, entryMessage(1))
	require.NoError(t, err)
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan(), "%s", &errs)
	server.kill()
	_, err = fmt.Fprintln(input, entryMessage(2))
	require.NoError(t, err)
	require.NoError(t, input.Close())
	for lines.Scan() {
	}
	assert.Error(t, client.Wait())
	assert.Equal(t, exit.Partial, client.ProcessState.ExitCode(), "%s", &errs)
	assert.Contains(t, errs.String(), "--resume goes on with what is left")

	w := &ledgerWorld{ledgerRun: ledgerRun{messages: 2}, t: t,
		server: startMortal(t, server.http, server.stream, "bolt:"+filepath.Join(dir, "server.db"))}
	client = exec.CommandContext(t.Context(), "hhfr", append(args, "1m")...)
	client.Stdin = strings.NewReader(entryMessage(1) + entryMessage(2))
	said, err := client.CombinedOutput()
	require.NoError(t, err, "%s", said)
	w.check()
}

// Both processes are killed while messages are sent: each message is in the ledger once, and in
// order, over either transport, also over streams without order. The long form is TestSoakLedger.
func TestLedgerOverKills(t *testing.T) {
	for _, transport := range []string{"tcp", "udp"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			killed := ledgerRun{transport: transport, messages: 1000, kills: 6, seed: 7}.run(t)
			assert.GreaterOrEqual(t, killed.all(), 4, "the run was over before")
			assert.Positive(t, killed.server)
			assert.Positive(t, killed.client)
		})
	}
}
