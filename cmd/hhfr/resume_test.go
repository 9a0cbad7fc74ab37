package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/internal/shared"
)

// resumeWorld is a server with a ledger, and a client's store, which killed runs leave.
type resumeWorld struct {
	t      *testing.T
	dir    string
	server *mortalServer
	flags  []string
}

func newResumeWorld(t *testing.T, flags ...string) *resumeWorld {
	w := &resumeWorld{t: t, dir: t.TempDir()}
	stream := shared.Addr(t)
	w.server = startMortal(t, shared.Addr(t), stream, "bolt:"+filepath.Join(w.dir, "server.db"), "--udp", stream)
	store := "bolt:" + filepath.Join(w.dir, "client.db")
	w.flags = append([]string{"--assurance", "exactly-once", "--store", store}, flags...)
	return w
}

// command is a run of stream to the ledger.
func (w *resumeWorld) command(args ...string) *exec.Cmd {
	args = append([]string{"stream", strings.TrimSuffix(w.server.url, "echo") + "ledger"}, append(args, w.flags...)...)
	return exec.CommandContext(w.t.Context(), "hhfr", args...)
}

// run is a run that completes.
func (w *resumeWorld) run(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	c := w.command(args...)
	c.Stdout, c.Stderr = &out, &errs
	_ = c.Run()
	return c.ProcessState.ExitCode(), out.String(), errs.String()
}

// toLedger is a request to the ledger.
func toLedger(operation, values string) string {
	return fmt.Sprintf(`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>`+
		`<%[1]s xmlns="%[2]s">%[3]s</%[1]s></s:Body></s:Envelope>`, operation, peer.Namespace, values)
}

func addMessage(id string) string { return toLedger("add", "<id>"+id+"</id><amount>1</amount>") }

// file writes a message and returns its path.
func (w *resumeWorld) file(id string) string {
	name := filepath.Join(w.dir, id+".xml")
	require.NoError(w.t, os.WriteFile(name, []byte(addMessage(id)), 0o600))
	return name
}

func (w *resumeWorld) files(ids ...string) (names []string) {
	for _, id := range ids {
		names = append(names, w.file(id))
	}
	return names
}

// dies kills a run when it has printed the replies to all of its messages, and waits for more.
func (w *resumeWorld) dies(ids []string, args ...string) {
	c := w.command(append([]string{"-"}, args...)...)
	input, err := c.StdinPipe()
	require.NoError(w.t, err)
	out, err := c.StdoutPipe()
	require.NoError(w.t, err)
	var errs bytes.Buffer
	c.Stderr = &errs
	require.NoError(w.t, c.Start())
	for _, id := range ids {
		_, err = io.WriteString(input, addMessage(id))
		require.NoError(w.t, err)
	}
	lines := bufio.NewScanner(out)
	for range ids {
		require.True(w.t, lines.Scan(), "%s", &errs)
	}
	require.NoError(w.t, c.Process.Kill())
	require.Error(w.t, c.Wait())
}

// entries counts the ledger's entries, by id.
func (w *resumeWorld) entries() map[string]int {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	got := map[string]int{}
	for from := 1; ; {
		request := strings.NewReader(toLedger("read", fmt.Sprintf("<from>%d</from><most>10000</most>", from)))
		reply, err := client.Post("http://"+w.server.http+"/ledger", "text/xml; charset=utf-8", request)
		require.NoError(w.t, err)
		body, err := io.ReadAll(reply.Body)
		require.NoError(w.t, err)
		require.NoError(w.t, reply.Body.Close())
		list := bytes.Split(body, []byte("<entry><id>"))[1:]
		for _, e := range list {
			id, _, _ := bytes.Cut(e, []byte("<"))
			got[string(id)]++
		}
		if from += len(list); len(list) == 0 {
			return got
		}
	}
}

func tally(ids ...string) map[string]int {
	want := map[string]int{}
	for _, id := range ids {
		want[id]++
	}
	return want
}

// --resume leaves out what the store proves to have been accepted, and nothing else: for any killed
// run, and any messages it is called with.
func TestResumeByTheCommand(t *testing.T) {
	t.Parallel()
	w := newResumeWorld(t)
	ends := func(left string, args ...string) {
		t.Helper()
		code, _, stderr := w.run(append(args, "--resume")...)
		assert.Equal(t, exit.Done, code, stderr)
		assert.Contains(t, stderr, left)
	}
	refused := func(why string, args ...string) {
		t.Helper()
		code, stdout, stderr := w.run(append(args, "--resume", "-q")...)
		assert.Equal(t, exit.WrongUsage, code)
		assert.Contains(t, stderr, why)
		assert.Contains(t, stderr, "hhfr: hint: nothing was sent of these messages")
		assert.Empty(t, stdout)
	}
	code, _, stderr := w.run(w.files("a1", "a2", "a3")...)
	require.Equal(t, exit.Done, code, stderr)
	assert.Equal(t, tally("a1", "a2", "a3"), w.entries())

	// A run that is killed before it has written anything leaves the store as it was; so does one
	// that never started.
	early := w.command(w.files("b1", "b2", "b3")...)
	require.NoError(t, early.Start())
	require.NoError(t, early.Process.Kill())
	require.Error(t, early.Wait())
	ends("no run to resume: the last one, of other messages, came to its end at", w.files("b1", "b2", "b3")...)
	ends("nothing is sent: a run of these messages (3) came to its end at", w.files("b1", "b2", "b3")...)
	refused("was the same up to its last message, number 3,", w.files("b1", "b2", "b3", "b4")...)
	refused("began with the same message, and was not the same in all", w.files("b1", "b2")...)
	assert.Equal(t, tally("a1", "a2", "a3", "b1", "b2", "b3"), w.entries())

	// A killed run, a run that resumes it and is killed too, and messages that are not theirs.
	w.dies([]string{"c1", "c2"})
	refused("the interrupted run began with another message; 2 of it were accepted", w.files("b1", "b2", "b3")...)
	refused("the interrupted run began with another message", w.files("c2", "c1")...)
	refused("not the same in the 2 that were accepted", w.files("c1", "c3", "c2")...)
	refused("began with the same message; 2 of it were accepted, and there are 1", w.file("c1"))
	refused("not the same in the 2 that were accepted", w.files("c1", "c1")...)
	w.dies(nil, "--resume")
	resumed := w.command("-", "--resume", "--concurrency", "1")
	resumed.Stdin = strings.NewReader(addMessage("c1") + addMessage("c2") + addMessage("c3"))
	said, err := resumed.CombinedOutput()
	require.NoError(t, err, "%s", said)
	assert.Contains(t, string(said), "2 messages left out, which the interrupted run had accepted")
	assert.Contains(t, string(said), "     3  200  add")
	assert.NotContains(t, string(said), "     2  200  add")

	// Equal messages count; what comes after an interrupted run is another run, and the interrupted
	// one can still be resumed.
	w.dies([]string{"d", "d"})
	code, _, stderr = w.run(w.files("e1", "e2")...)
	require.Equal(t, exit.Done, code, stderr)
	ends("2 messages left out", w.file("d"), "--repeat", "5", "--concurrency", "2")
	ends("nothing is sent", w.file("d"), "--repeat", "5")
	want := tally("a1", "a2", "a3", "b1", "b2", "b3", "c1", "c2", "c3", "e1", "e2", "d", "d", "d", "d", "d")
	assert.Equal(t, want, w.entries())

	// The same messages in another form are different: heads are part of them.
	w.dies([]string{"f1"})
	refused("began with another message", w.file("f1"), "-H", "X-Trace: 1")
	refused("began with another message", w.file("f1"), "--one-way")
	ends("1 message left out", append(w.files("f1", "f2"), "-o", "json")...)
	want["f1"], want["f2"] = 1, 1
	assert.Equal(t, want, w.entries())
}

// resumeKills sends batches by runs that are killed at any moment, from the first on, and resumed
// until they complete: the ledger then has each message once.
type resumeKills struct {
	flags []string
	kills int
	seed  uint64
}

// figures count what happened.
type figures struct {
	batches, messages, kills, early, resumes, resumesKilled, fresh, goneOn, nothing, refused int
}

func (k resumeKills) run(t *testing.T) (f figures) {
	w := newResumeWorld(t, k.flags...)
	rnd := rand.New(rand.NewPCG(k.seed, 0))
	want := map[string]int{}
	for f.kills < k.kills && !t.Failed() {
		f.batches++
		var ids []string
		if rnd.IntN(4) == 0 {
			ids = append(ids, "the same") // batches differ, but many begin alike
		}
		for n := range 1 + rnd.IntN(30) {
			ids = append(ids, fmt.Sprintf("%d-%d", f.batches, n))
		}
		f.messages += len(ids)
		var all strings.Builder
		for _, id := range ids {
			want[id]++
			all.WriteString(addMessage(id))
		}
		input := filepath.Join(w.dir, "batch.xml")
		require.NoError(t, os.WriteFile(input, []byte(all.String()), 0o600))
		resume := false
		for range 1000 {
			code, took, stderr := w.struck(rnd, input, resume, f.kills < k.kills)
			switch {
			case code < 0:
				f.kills++
				if took < 20*time.Millisecond {
					f.early++
				}
				if resume {
					f.resumesKilled++
				}
			case resume && code == exit.WrongUsage && strings.Contains(stderr, "and was not the same in all"):
				f.refused++ // it begins like the batch before, and had not begun: send it as before
				resume = false
				continue
			case code != exit.Done:
				require.Fail(t, "the run failed", "seed %d, batch %d, resume %v: %d %s",
					k.seed, f.batches, resume, code, stderr)
			}
			if strings.Contains(stderr, "no run to resume: the last one") {
				f.fresh++
			}
			if strings.Contains(stderr, " left out") {
				f.goneOn++
			}
			if strings.Contains(stderr, "nothing is sent") {
				f.nothing++
			}
			if code == exit.Done && (resume || rnd.IntN(2) == 0) {
				break
			}
			resume = true // also when it had completed: then nothing is sent
			f.resumes++
		}
	}
	got := w.entries()
	for id, n := range want {
		require.Equal(t, n, got[id], "seed %d: %s", k.seed, id)
	}
	require.Len(t, got, len(want))
	return f
}

// struck is a run that is killed after a random time, unless it ends before; its exit code is
// negative then.
func (w *resumeWorld) struck(
	rnd *rand.Rand, input string, resume, strikes bool,
) (code int, took time.Duration, stderr string) {
	args := []string{"-", "--concurrency", fmt.Sprint(1 + rnd.IntN(8))}
	if resume {
		args = append(args, "--resume")
	}
	c := w.command(args...)
	in, err := os.Open(input)
	require.NoError(w.t, err)
	defer in.Close()
	var errs bytes.Buffer
	c.Stdin, c.Stderr = in, &errs
	after := time.Duration(rnd.Int64N(int64([]time.Duration{5, 30, 100, 300}[rnd.IntN(4)] * time.Millisecond)))
	require.NoError(w.t, c.Start())
	if strikes && (!resume || rnd.IntN(2) == 0) {
		kill := time.AfterFunc(after, func() { _ = c.Process.Kill() })
		defer kill.Stop()
	}
	_ = c.Wait()
	return c.ProcessState.ExitCode(), after, errs.String()
}

// Runs are killed at any moment; the long form is TestSoakResume.
func TestResumeOverKills(t *testing.T) {
	t.Parallel()
	f := resumeKills{kills: 8, seed: 1}.run(t)
	assert.Equal(t, 8, f.kills)
}

// A client whose store is put back to an older copy is told so, and what to do; it does not wait.
func TestOlderCopyOfTheStoreIsTold(t *testing.T) {
	w := newResumeWorld(t)
	store := filepath.Join(w.dir, "client.db")
	w.dies([]string{"a"})
	older := shared.Read(t, store)
	w.dies([]string{"b", "c", "d"})
	require.NoError(t, os.WriteFile(store, older, 0o600))
	code, _, stderr := w.run(w.file("e"))
	assert.Equal(t, exit.Failed, code)
	assert.Contains(t, stderr, "state is older than what the peer has: urn:hhfr:sequence:")
	assert.Contains(t, stderr, "hint: is bolt:"+store+" an older copy, as from a backup?")

	list, err := exec.CommandContext(t.Context(), "hhfr", "context", "list", "urn:hhfr:outbox:", "--store",
		"bolt:"+store).Output()
	require.NoError(t, err)
	outbox := regexp.MustCompile(`urn:hhfr:outbox:\S+`).Find(list)
	require.NotNil(t, outbox, "%s", list)
	require.NoError(t, exec.CommandContext(t.Context(), "hhfr", "context", "delete", string(outbox), "--store",
		"bolt:"+store).Run())
	code, stdout, stderr := w.run(w.file("e"))
	assert.Zero(t, code, stderr)
	assert.Contains(t, stdout, "200")
}
