//go:build interop

package page_test

import (
	"bufio"
	"encoding/base64"
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

// tab is a page in a Chromium that is told what to do by the DevTools protocol, through pipes.
type tab struct {
	t       *testing.T
	in      *os.File
	out     *bufio.Reader
	session string
	calls   int
}

// openTab opens a page.
func openTab(t *testing.T, url string) *tab {
	t.Helper()
	toRead, in, err := os.Pipe()
	require.NoError(t, err)
	out, toWrite, err := os.Pipe()
	require.NoError(t, err)
	profile, err := os.MkdirTemp("", "hhfr-chromium")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(profile) }) // processes of the browser may still write there
	c := exec.CommandContext(t.Context(), shared.Program(t, "chromium"), "--headless", "--no-sandbox", "--disable-gpu",
		"--no-first-run", "--user-data-dir="+profile, "--window-size=1400,800", "--remote-debugging-pipe")
	c.ExtraFiles = []*os.File{toRead, toWrite}
	require.NoError(t, c.Start())
	require.NoError(t, toRead.Close())
	require.NoError(t, toWrite.Close())
	b := &tab{t: t, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		_, _ = in.WriteString(`{"id":0,"method":"Browser.close"}` + "\x00")
		_ = c.Wait()
		_, _ = in.Close(), out.Close()
	})
	var target struct{ TargetID, SessionID string }
	b.into(&target, "Target.createTarget", map[string]any{"url": url})
	b.into(&target, "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true})
	b.session = target.SessionID
	return b
}

// do has the browser do something, and waits until it has.
func (b *tab) do(method string, params map[string]any) json.RawMessage {
	b.t.Helper()
	b.calls++
	call := map[string]any{"id": b.calls, "method": method, "params": params}
	if b.session != "" {
		call["sessionId"] = b.session
	}
	octets, err := json.Marshal(call)
	require.NoError(b.t, err)
	_, err = b.in.Write(append(octets, 0))
	require.NoError(b.t, err)
	for {
		said, err := b.out.ReadBytes(0)
		require.NoError(b.t, err, method)
		var reply struct {
			ID            int
			Result, Error json.RawMessage
		}
		require.NoError(b.t, json.Unmarshal(said[:len(said)-1], &reply))
		if reply.ID == b.calls {
			require.Empty(b.t, string(reply.Error), method)
			return reply.Result
		}
	}
}

func (b *tab) into(to any, method string, params map[string]any) {
	b.t.Helper()
	require.NoError(b.t, json.Unmarshal(b.do(method, params), to))
}

// value is the text that an expression has in the page.
func (b *tab) value(expression string) string {
	b.t.Helper()
	var got struct {
		Result           struct{ Value string }
		ExceptionDetails json.RawMessage
	}
	b.into(&got, "Runtime.evaluate", map[string]any{
		"expression": "(async () => String(await (" + expression + ")))()", "awaitPromise": true, "returnByValue": true,
		"allowUnsafeEvalBlockedByCSP": false,
	})
	require.Empty(b.t, string(got.ExceptionDetails), expression)
	return got.Result.Value
}

// until waits until the line of the page has a text.
func (b *tab) until(text string) {
	b.t.Helper()
	var said string
	require.Eventually(b.t, func() bool {
		said = b.value(`document.getElementById("said")?.textContent`)
		return strings.Contains(said, text)
	}, time.Minute, 50*time.Millisecond, "%q in %q", text, &said)
}

// give chooses files in the page.
func (b *tab) give(files ...string) {
	b.t.Helper()
	var input struct{ Result struct{ ObjectID string } }
	b.into(&input, "Runtime.evaluate", map[string]any{"expression": `document.getElementById("files")`})
	b.do("DOM.setFileInputFiles", map[string]any{"files": files, "objectId": input.Result.ObjectID})
}

// look writes what the page looks like to a file, if HHFR_SCREENSHOTS names a folder.
func (b *tab) look(name string) {
	b.t.Helper()
	dir := os.Getenv("HHFR_SCREENSHOTS")
	if dir == "" {
		return
	}
	var shot struct{ Data string }
	b.into(&shot, "Page.captureScreenshot", map[string]any{"format": "png"})
	octets, err := base64.StdEncoding.DecodeString(shot.Data)
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(dir, name), octets, 0o600))
}

// messages are all rows, and the envelopes as they were sent.
func (b *tab) messages() (list []string) {
	b.t.Helper()
	text := b.value(`JSON.stringify(Array.from({ length: hhfr.length() },
		(_, i) => hhfr.row(i).concat(hhfr.show(i, false)).join("\n")))`)
	require.NoError(b.t, json.Unmarshal([]byte(text), &list))
	return list
}

// natively is what the same program has without a browser.
func natively(t *testing.T, files ...string) (list []string) {
	t.Helper()
	v := opened(t, files...)
	for i := range v.Len() {
		head, body := v.Show(i, false)
		list = append(list, strings.Join(append(v.Row(i), head, body), "\n"))
	}
	return list
}

// TestInteropPage: in a browser the page lists and shows what the program does elsewhere, of a
// recording of a stream with a store and of plain SOAP; it searches and filters; markup and scripts
// in messages are texts; and its policy lets nothing out.
func TestInteropPage(t *testing.T) {
	made := filepath.Join(t.TempDir(), "hhfr.html")
	out, err := exec.CommandContext(t.Context(), shared.Testdata(t, "..", "scripts", "page.sh"), made).CombinedOutput()
	require.NoError(t, err, "%s", out)
	b := openTab(t, "file://"+made)
	b.until("drop captures")
	b.look("empty.png")
	for _, files := range [][]string{
		{shared.Testdata(t, "pcap", "session.pcapng")}, {shared.Testdata(t, "pcap", "plain.pcapng")},
		{cutCapture(t), storeFile(t)}, {shared.Testdata(t, "pcap", "datagrams.pcap")},
	} {
		want := natively(t, files...)
		b.give(files...)
		b.until(opened(t, files...).Found())
		assert.Equal(t, want, b.messages(), files)
	}

	const fill = `(id => (text => { const e = document.getElementById(id); e.value = text;
		e.dispatchEvent(new Event("input")) }))`
	session := shared.Testdata(t, "pcap", "session.pcapng")
	b.give(session)
	b.until(opened(t, session).Found())
	assert.Contains(t, b.value(`document.getElementById("body").textContent`), "<")
	b.value(`document.getElementById("list").dispatchEvent(new KeyboardEvent("keydown", { key: "End" }))`)
	assert.Equal(t, "33 true", b.value(`new Promise(done => requestAnimationFrame(() => {
		const row = document.querySelector(".row.at"), bottom = e => e.getBoundingClientRect().bottom;
		done(row.dataset.row + " " + (bottom(row) <= bottom(document.getElementById("list")))); }))`))
	b.look("end.png")
	b.value(fill + `("filter")("reply && numb")`)
	b.until("^")
	b.look("wrong.png")
	b.value(fill + `("filter")("reply && number == 2")`)
	b.until("; 1 chosen")
	b.value(fill + `("filter")("")`)
	b.value(fill + `("search")("getforecastresponse")`)
	b.until("chosen")
	assert.Contains(t, b.value(`document.querySelector(".row.at").textContent`), "GetForecastResponse")
	b.look("session.png")
	b.value(fill + `("search")("")`)

	b.give(hostileCapture(t))
	b.until("2 messages")
	body := b.value(`document.getElementById("body").textContent`)
	assert.Contains(t, body, `<img src="x" onerror="document.title=1"/>`)
	assert.Contains(t, body, "</script>")
	assert.Equal(t, "hhfr decode", b.value("document.title"))
	assert.Equal(t, "0", b.value(`document.querySelectorAll("main script, main img, main b").length`))
	assert.Contains(t, b.value(`document.getElementById("room").textContent`), "<b>&amp;</b>")
	b.look("hostile.png")

	for _, out := range []string{
		`fetch("http://127.0.0.1:9/").then(() => "sent", e => "stopped")`,
		`fetch("data:,x").then(() => "sent", e => "stopped")`,
		`new Promise(done => { const i = new Image(); i.onload = () => done("sent"); i.onerror = () => done("stopped");
			i.src = "data:image/gif;base64,R0lGODlhAQABAAAAACw="; })`,
		`(() => { try { return eval("'sent'") } catch { return "stopped" } })()`,
	} {
		assert.Equal(t, "stopped", b.value(out), out)
	}
	b.give(made)
	b.until("neither a capture")
}
