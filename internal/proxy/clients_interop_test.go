//go:build interop && linux

package proxy_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hhfr/hhfr/internal/principal"
	"github.com/hhfr/hhfr/internal/shared"
)

// place is where clients are: on this machine, or in a network namespace with an address of its
// own.
type place struct {
	t  *testing.T
	ns string // empty: here
	// at is the address at which clients there reach this machine.
	at string
}

// places are how many namespaces there were.
var places atomic.Int32

// apart is a namespace. If the machine does not allow it, the test is skipped.
func apart(t *testing.T) place {
	t.Helper()
	ip := shared.Program(t, "ip")
	n := places.Add(1)
	p := place{t, fmt.Sprintf("hhfrb%d-%d", os.Getpid(), n), fmt.Sprintf("10.78.%d.1", n)}
	if out, err := exec.CommandContext(t.Context(), ip, "netns", "add", p.ns).CombinedOutput(); err != nil {
		t.Skipf("no network namespaces here: %s", out)
	}
	t.Cleanup(func() { _ = exec.CommandContext(context.Background(), ip, "netns", "del", p.ns).Run() })
	link, there := fmt.Sprintf("hhfrb%d", n), fmt.Sprintf("10.78.%d.2", n)
	for _, args := range []string{
		"link add " + link + " type veth peer name c0 netns " + p.ns, "address add " + p.at + "/24 dev " + link,
		"link set " + link + " up",
		"-n " + p.ns + " address add " + there + "/24 dev c0", "-n " + p.ns + " link set c0 up",
		"-n " + p.ns + " link set lo up",
	} {
		out, err := exec.CommandContext(t.Context(), ip, strings.Fields(args)...).CombinedOutput()
		require.NoError(t, err, "%s: %s", args, out)
	}
	t.Cleanup(func() { _ = exec.CommandContext(context.Background(), ip, "link", "del", link).Run() })
	return p
}

// command is a program that runs there.
func (p place) command(program string, args ...string) *exec.Cmd {
	if p.ns == "" {
		return exec.CommandContext(p.t.Context(), program, args...)
	}
	return exec.CommandContext(p.t.Context(), "ip", append([]string{"netns", "exec", p.ns, program}, args...)...)
}

// connect opens a connection from there.
func (p place) connect(to string) *client {
	p.t.Helper()
	var conn net.Conn
	open := func() (err error) {
		conn, err = new(net.Dialer).DialContext(p.t.Context(), "tcp", to)
		return err
	}
	err := make(chan error, 1)
	go func() {
		if p.ns == "" {
			err <- open()
			return
		}
		runtime.LockOSThread() // and never unlocked: the thread ends, with its namespace
		f, bad := os.Open("/run/netns/" + p.ns)
		if bad == nil {
			bad = unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
			_ = f.Close()
		}
		if bad == nil {
			bad = open()
		}
		err <- bad
	}()
	require.NoError(p.t, <-err)
	require.NoError(p.t, conn.SetDeadline(time.Now().Add(patience)))
	p.t.Cleanup(func() { _ = conn.Close() })
	return &client{t: p.t, TCPConn: conn.(*net.TCPConn)}
}

// oracle is a pair that clients reach there.
func (p place) oracle(mode principal.Mode) *oracle {
	return newOracle(p.t, mode, func(c *settings) {
		require.NoError(p.t, c.Listen.Close())
		var err error
		c.Listen, err = new(net.ListenConfig).Listen(p.t.Context(), "tcp", net.JoinHostPort(p.at, "0"))
		require.NoError(p.t, err)
		c.Clients = mode
	})
}

// TestInteropConnectionForEachCall: of clients at an address that is not loopback, a connection for
// each call takes at most 1.2 times what a kept one takes, if they show a proof, or
// --client-per-address says so.
func TestInteropConnectionForEachCall(t *testing.T) {
	const calls = 40
	p := apart(t)
	for _, tt := range []struct {
		name, fields string
		mode         principal.Mode
		most         float64
	}{
		{"with a proof", withSecret, principal.ByProof, 1.2},
		{"by address", asSOAP, principal.ByAddress, 1.2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p.t = t
			took := map[bool]int{}
			for _, keeps := range []bool{true, false} {
				o := p.oracle(tt.mode)
				c, before := p.connect(o.near.url().Host), 0
				for i := range calls + 4 {
					if i == 4 { // the shapes have come
						before = o.took()
					}
					o.say(c, tt.fields, poll(i))
					if !keeps {
						require.NoError(t, c.Close())
						o.left()
						c = p.connect(o.near.url().Host)
					}
				}
				took[keeps] = o.took() - before
			}
			t.Logf("bytes a call: kept %d, a connection for each %d", took[true]/calls, took[false]/calls)
			assert.LessOrEqual(t, float64(took[false]), tt.most*float64(took[true]))
		})
	}
}

// poll is a call of a camera's client, as ONVIF has it: with a digest of the password.
func poll(i int) string {
	sum := sha256.Sum256([]byte{byte(i)})
	return fmt.Sprintf(`<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope" `+
		`xmlns:a="http://www.w3.org/2005/08/addressing"><s:Header><a:MessageID>urn:uuid:%x-%x-%x-%x-%x</a:MessageID>`+
		`<a:To>http://10.78.1.1/onvif/subscription?id=4711</a:To>`+
		`<w:Security xmlns:w="http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd">`+
		`<w:UsernameToken><w:Username>viewer</w:Username><w:Password>%s`+
		`</w:Password></w:UsernameToken></w:Security></s:Header><s:Body><t:PullMessages xmlns:t="http://www.onvif.org/`+
		`ver10/events/wsdl"><t:Timeout>PT5S</t:Timeout></t:PullMessages></s:Body></s:Envelope>`, sum[:4], sum[4:6],
		sum[6:8], sum[8:10], sum[10:16], base64.StdEncoding.EncodeToString(sum[12:]))
}

// took is all that went over the link so far.
func (o *oracle) took() int {
	seen := o.tap.seen()
	return seen[0] + seen[1]
}

// TestInteropBrowser: what a page has a browser send, by an image, a form, fetch and sendBeacon, to
// the near half that other clients of the same address use, costs the same whether or not they sent
// the same.
func TestInteropBrowser(t *testing.T) {
	chromium := shared.Program(t, "chromium")
	for name, at := range map[string]func(t *testing.T) place{
		"loopback":      func(t *testing.T) place { return place{t, "", "127.0.0.1"} },
		"other address": apart,
	} {
		for mode, fields := range map[principal.Mode]string{
			principal.ByAddress: asSOAP, principal.ByProof: asSOAP + withCookie,
		} {
			t.Run(fmt.Sprintf("%s, %d", name, mode), func(t *testing.T) {
				p := at(t)
				o := p.oracle(mode)
				costs := map[string][2][]int{} // by kind: of wrong guesses, of right ones
				for _, one := range o.browse(p, chromium, fields) {
					list := costs[one.kind]
					list[one.right] = append(list[one.right], one.cost)
					costs[one.kind] = list
				}
				require.Len(t, costs, 4)
				for kind, list := range costs {
					t.Log(kind, list)
					for i := range list {
						slices.Sort(list[i])
					}
					wrong, right := list[0][len(list[0])/2], list[1][len(list[1])/2]
					assert.InDelta(t, wrong, right, 2*wordSpread, "%s: %v", kind, list)
				}
			})
		}
	}
}

// guess is one that a page made.
type guess struct {
	kind        string
	right, cost int
}

// page asks for one guess after another, and has the browser send it.
const page = `<!doctype html><iframe name="frame"></iframe><script>
document.cookie = "id=0123456789abcdef; path=/";
const once = (of, begin) => new Promise(done => { of.onload = of.onerror = done; begin(); });
const ways = {
  image: (to, text) => {
    const i = new Image();
    return once(i, () => { i.src = to + encodeURIComponent(text); });
  },
  form: (to, text) => {
    const f = document.createElement("form"), t = document.createElement("textarea");
    f.method = "POST"; f.enctype = "text/plain"; f.action = to; f.target = "frame"; t.name = "t"; t.value = text;
    f.append(t); document.body.append(f);
    return once(document.querySelector("iframe"), () => f.submit());
  },
  fetch: (to, text) =>
    fetch(to, {method: "POST", mode: "no-cors", credentials: "include", body: new Blob([text])}).catch(() => {}),
  beacon: async (to, text) => navigator.sendBeacon(to, new Blob([text])),
};
(async () => {
  for (;;) {
    const next = await (await fetch("next")).json();
    if (!next.kind) break;
    await ways[next.kind](next.to, next.text);
  }
})();
</script>`

// browse has a browser make guesses of each kind, behind calls of another client each, and returns
// them.
func (o *oracle) browse(p place, chromium, fields string) (all []guess) {
	const rounds = 7
	kinds := []string{"image", "form", "fetch", "beacon"}
	t, over := p.t, make(chan struct{})
	to := "http://" + o.near.url().Host + "/service?guess"
	var before, secret = 0, ""
	next := func(w http.ResponseWriter) {
		if step := len(all); step > 0 {
			last := &all[step-1]
			require.Eventually(t, func() bool {
				return strings.Count(strings.Join(o.server.received(), ""), "guess") == step
			}, patience, time.Millisecond, last.kind)
			o.left()
			last.cost = o.took() - before
		}
		said := map[string]string{}
		if step := len(all); step < rounds*len(kinds) {
			secret = o.word()
			c := p.connect(o.near.url().Host)
			o.calls(c, "", fields, secret)
			require.NoError(t, c.Close())
			o.left()
			one := guess{kind: kinds[step%len(kinds)], right: step / len(kinds) % 2}
			if one.right == 0 {
				secret = o.word()
			}
			all = append(all, one)
			before = o.took()
			said = map[string]string{"kind": one.kind, "to": to, "text": envelopeOf(secret)}
		}
		assert.NoError(t, json.NewEncoder(w).Encode(said))
		if len(said) == 0 {
			close(over)
		}
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte(page))
		case "/next":
			next(w)
		default:
			http.NotFound(w, r)
		}
	}))
	require.NoError(t, server.Listener.Close())
	var err error
	server.Listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(p.at, "0"))
	require.NoError(t, err)
	server.Start()
	defer server.Close()
	c := p.command(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
		"--user-data-dir="+t.TempDir(), server.URL)
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, c.Start())
	defer func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		_ = c.Wait()
	}()
	select {
	case <-over:
	case <-time.After(patience):
		t.Fatalf("the page made %d guesses; chromium said:\n%s", len(all), &said)
	}
	return all[len(kinds):] // the shapes have come
}
