//go:build interop

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// jms has the programs of testdata/interop/jms: Apache ActiveMQ Artemis, and CXF at queues of it.
type jms struct {
	*testing.T
	dir string
}

func buildJMS(t *testing.T) *jms {
	for _, program := range []string{"java", "javac", "mvn"} {
		shared.Program(t, program)
	}
	dir, sources := t.TempDir(), shared.Testdata(t, "interop", "jms")
	build(t, dir, "mvn", "-q", "-B", "-f", filepath.Join(sources, "pom.xml"), "dependency:copy-dependencies",
		"-DoutputDirectory="+filepath.Join(dir, "lib"))
	build(t, dir, "javac", "-proc:none", "-nowarn", "-encoding", "UTF-8", "-cp", "lib/*", "-d", "classes",
		filepath.Join(sources, "Jms.java"))
	return &jms{t, dir}
}

func (j *jms) command(args ...string) *exec.Cmd {
	quiet := shared.Testdata(j.T, "interop", "stacks", "quiet.properties")
	cmd := exec.CommandContext(j.Context(), "java", append([]string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
		"-Djava.util.logging.config.file=" + quiet, "-cp", "classes" + string(filepath.ListSeparator) + "lib/*", "Jms"},
		args...)...)
	cmd.Dir = j.dir
	return cmd
}

// start starts a server, and returns what it prints and what kills it.
func (j *jms) start(args ...string) (said string, kill func()) {
	j.Helper()
	cmd := j.command(args...)
	_, err := cmd.StdinPipe() // it ends with it
	require.NoError(j, err)
	out, err := cmd.StdoutPipe()
	require.NoError(j, err)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	require.NoError(j, cmd.Start())
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	j.Cleanup(kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(j, err, "%s", &errs)
	return strings.TrimSpace(line), kill
}

// serve starts a process of hhfr that answers the requests of a queue.
func (j *jms) serve(store, queue string, more ...string) *proxyProcess {
	j.Helper()
	return startCommand(j.T, exec.CommandContext(j.Context(), "hhfr", append([]string{"serve", "--listen",
		"127.0.0.1:0", "--store", store, "-o", "json", "-v", "--queue", queue}, more...)...))
}

const sumOfTwo = `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>` +
	`<sum xmlns="urn:hhfr:peer:1"><item>1.5</item><item>2</item></sum></s:Body></s:Envelope>`

// sums is the command that sends requests, and its summary.
func sums(t *testing.T, calls, file, to, broker string, more ...string) (code int, replies int, stderr string) {
	t.Helper()
	code, out, stderr := do(t, append([]string{"stream", to, file, "--repeat", calls, "--broker", broker, "-o", "json"},
		more...)...)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var last struct {
		Summary struct{ Messages, Failed int }
	}
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &last), "%s", stderr)
	return code, last.Summary.Messages - last.Summary.Failed, stderr
}

// TestInteropQueues: CXF's clients and servers of SOAP over JMS, by messages of text and of bytes,
// through Artemis; the broker restarted, and one of two servers killed, while requests are there.
func TestInteropQueues(t *testing.T) {
	j := buildJMS(t)
	folder, file := filepath.Join(t.TempDir(), "broker"), filepath.Join(t.TempDir(), "sum.xml")
	require.NoError(t, os.WriteFile(file, []byte(sumOfTwo), 0o600))
	port, kill := j.start("broker", folder)
	broker := "amqp://127.0.0.1:" + port
	one := j.serve("mem:", broker+"/hhfr")

	for name, address := range map[string]string{
		"text": "jms:queue:hhfr?targetService=sum", "bytes": "jms:queue:hhfr?targetService=sum&messageType=byte",
	} {
		t.Run("a client of CXF, "+name, func(t *testing.T) {
			out, err := j.command("call", port, address, "200", "8").CombinedOutput()
			require.NoError(t, err, "%s", out)
			assert.Contains(t, string(out), "200 right answers")
		})
	}
	t.Run("hhfr call", func(t *testing.T) {
		code, out, stderr := do(t, "call", "http://"+one.listen+"/sum?wsdl", "sum", "item:=[1,2.5]", "--to",
			"jms:queue:hhfr?targetService=sum", "--broker", broker)
		assert.Zero(t, code, stderr)
		assert.Contains(t, out, `"result": 3.5`)
		code, out, stderr = do(t, "call", "http://"+one.listen+"/sum?wsdl", "sum", "item:=[1,3]", "--binding",
			"sumSoapJMS", "--broker", broker)
		assert.Zero(t, code, stderr)
		assert.Contains(t, out, `"result": 4`)
	})
	t.Run("a server of CXF", func(t *testing.T) {
		_, stop := j.start("serve", port, "jms:queue:cxf")
		defer stop()
		code, out, stderr := do(t, "stream", "jms:queue:cxf", file, "--broker", broker, "-o", "xml")
		require.Zero(t, code, stderr)
		assert.Contains(t, out, ">3.5</")
		code, replies, stderr := sums(t, "300", file, "jms:queue:cxf", broker)
		assert.Zero(t, code, stderr)
		assert.Equal(t, 300, replies)
		none := filepath.Join(t.TempDir(), "none.xml")
		require.NoError(t, os.WriteFile(none, []byte(strings.ReplaceAll(strings.ReplaceAll(sumOfTwo,
			"<item>1.5</item>", ""), "<item>2</item>", "")), 0o600))
		code, out, _ = do(t, "stream", "jms:queue:cxf", none, "--broker", broker, "-o", "xml")
		assert.Equal(t, 1, code)
		assert.Contains(t, out, "nothing to add")
	})
	t.Run("one of two servers is killed", func(t *testing.T) {
		other := j.serve("mem:", broker+"/hhfr")
		go func() {
			time.Sleep(300 * time.Millisecond) // some requests are with it, whenever that is
			other.kill()
		}()
		code, replies, stderr := sums(t, "2000", file, "jms:queue:hhfr?targetService=sum", broker)
		assert.Zero(t, code, stderr)
		assert.Equal(t, 2000, replies, "nothing is lost")
	})
	t.Run("content of hhfr, and one of two servers is killed", func(t *testing.T) {
		store := t.TempDir()
		j.serve(store, broker+"/both")
		other := j.serve(store, broker+"/both")
		go func() {
			time.Sleep(300 * time.Millisecond)
			other.kill()
		}()
		code, replies, stderr := sums(t, "2000", file, "jms:queue:both?targetService=sum", broker, "--store", store)
		assert.Zero(t, code, stderr)
		assert.Equal(t, 2000, replies, "nothing is lost")
		assert.Regexp(t, `1\d\d\d requests went as content of hhfr`, stderr)
		out, err := j.command("call", port, "jms:queue:both?targetService=sum", "50", "4").CombinedOutput()
		require.NoError(t, err, "%s", out)
		assert.Contains(t, string(out), "50 right answers")
		code, replies, stderr = sums(t, "100", file, "jms:queue:both?targetService=sum", broker, "--store", t.TempDir())
		assert.Zero(t, code, stderr)
		assert.Equal(t, 100, replies)
		assert.Contains(t, stderr, "messages go as XML: the server has another store")
	})
	t.Run("exactly once, and one of two servers is killed", func(t *testing.T) {
		store, folder := t.TempDir(), t.TempDir()
		j.serve(store, broker+"/books", "--exactly-once")
		other := j.serve(store, broker+"/books", "--exactly-once")
		go func() {
			time.Sleep(300 * time.Millisecond)
			other.kill()
		}()
		write := func(name, body string) string {
			path := filepath.Join(folder, name)
			text := `<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body>` + body +
				`</e:Body></e:Envelope>`
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			return path
		}
		add := write("add.xml", `<add xmlns="urn:hhfr:peer:1"><id>a</id><amount>5</amount></add>`)
		code, replies, stderr := sums(t, "1500", add, "jms:queue:books?targetService=ledger", broker, "--store", store)
		assert.Zero(t, code, stderr)
		assert.Equal(t, 1500, replies, "nothing is lost")
		read := write("read.xml", `<read xmlns="urn:hhfr:peer:1"><most>1</most></read>`)
		code, out, stderr := do(t, "stream", "jms:queue:books?targetService=ledger", read, "--broker", broker, "-o",
			"xml")
		assert.Zero(t, code, stderr)
		assert.Contains(t, out, "<count>1500</count>", "nothing twice")
	})
	t.Run("a pair of proxies, the far one killed", func(t *testing.T) {
		store := t.TempDir()
		half := func(args ...string) *proxyProcess {
			return startCommand(t, exec.CommandContext(t.Context(), "hhfr", append([]string{"proxy", "--store", store,
				"-o", "json", "-v"}, args...)...))
		}
		origin := startCommand(t, exec.CommandContext(t.Context(), "hhfr", "serve", "--listen", "127.0.0.1:0", "-o",
			"json"))
		far := func() *proxyProcess { return half("--queue", broker+"/link", "--upstream", "http://"+origin.listen) }
		first := far()
		near := half("--listen", "127.0.0.1:0", "--upstream", "jms:queue:link?timeToLive=60000", "--broker", broker)
		one := half("--listen", "127.0.0.1:0", "--upstream", "jms:queue:link", "--one-way", "--broker", broker)
		send := func(calls, to string, more ...string) string {
			code, out, stderr := do(t, append([]string{"stream", "http://" + to + "/sum", file, "--repeat", calls, "-o",
				"json"}, more...)...)
			assert.Zero(t, code, stderr)
			return out
		}
		assert.Contains(t, send("1", near.listen), `"messages":1,"failed":0`)
		near.told("messages go as content of hhfr")
		go func() {
			time.Sleep(300 * time.Millisecond)
			first.kill()
			far()
		}()
		assert.Contains(t, send("2000", near.listen), `"messages":2000,"failed":0`)
		near.end()
		assert.Contains(t, near.errs.String(), "requests went as content of hhfr")
		send("50", one.listen, "--one-way")
		one.told("messages go as content of hhfr")
	})
	t.Run("the broker is killed, and comes back", func(t *testing.T) {
		go func() {
			time.Sleep(300 * time.Millisecond)
			kill()
			j.start("broker", folder, port)
		}()
		code, replies, stderr := sums(t, "5000", file, "jms:queue:hhfr?targetService=sum&replyToName=answers", broker)
		assert.Zero(t, code, stderr)
		assert.Equal(t, 5000, replies, "nothing is lost")
		one.told("the broker is there again")
	})
	t.Run("no broker", func(t *testing.T) {
		code, _, stderr := do(t, "stream", "jms:queue:hhfr", file, "--broker", "amqp://127.0.0.1"+closedPort(t))
		assert.Equal(t, 3, code)
		assert.Contains(t, stderr, "broker unreachable")
	})
	t.Run("one way, and nobody there", func(t *testing.T) {
		code, _, stderr := do(t, "stream", "jms:queue:hhfr?targetService=sum", file, "--one-way", "--broker", broker)
		assert.Zero(t, code, stderr)
		code, _, stderr = do(t, "stream", "jms:queue:nobody?timeToLive=500", file, "--broker", broker)
		assert.Equal(t, 5, code)
		assert.Contains(t, stderr, "the fate of message 1 is unknown")
	})
}
