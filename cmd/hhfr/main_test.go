package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/cmdline"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/serve"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/resolve"
	"github.com/hhfr/hhfr/internal/shared"
)

// leakless are tests that leave no goroutine behind.
type leakless struct{ *testing.M }

func (m leakless) Run() int {
	states, err := os.MkdirTemp("", "hhfr-states") // servers without --store write there, not in the home of who tests
	if err != nil || os.Setenv("XDG_STATE_HOME", states) != nil || os.Unsetenv("STATE_DIRECTORY") != nil {
		fmt.Fprintln(os.Stderr, "no folder for the states of servers", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(states) }()
	printed, err := os.MkdirTemp("", "hhfr-printed")
	if err != nil || os.Setenv(printedDir, printed) != nil {
		fmt.Fprintln(os.Stderr, "no folder for what commands print", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(printed) }()
	code := m.M.Run()
	if code == 0 {
		if err := errors.Join(checkPrinted(printed), goleak.Find()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

func TestMain(m *testing.M) {
	testscript.Main(leakless{m}, programs)
}

// programs are what tests run as processes of their own.
var programs = map[string]func(){
	"hhfr":        func() { os.Exit(clean(keptRun(resolve.Local("")))) },
	"interrupted": func() { os.Exit(keptRun(resolve.Local(""))) },
	"measured":    measured,
	"phone":       func() { os.Exit(clean(phone())) },
	"plainserver": plainServer,
	"longserver":  longServer,
	"longclient":  longClient,
	"natsserver":  natsServer,
}

// clean is the exit code that scripts see. They end servers by SIGINT, the one signal beside
// SIGKILL that testscript knows, and expect an orderly end, whose exit code is then that of a
// server. Under the name interrupted, a script runs hhfr with its own exit code.
func clean(code int) int {
	if code == exit.Interrupted && (slices.Contains(os.Args, "serve") || slices.Contains(os.Args, "proxy")) {
		return exit.Done
	}
	return code
}

// execute runs a command line and returns its exit code.
func execute(ctx context.Context, env command.Env, args []string) int {
	return cmdline.Execute(ctx, env, newRoot, args)
}

// measured is hhfr, whose last lines are the most memory that it took, and the part of it that is
// the program's own file, if the system knows them. Tests are part of that file, so it is none of
// hhfr's needs, and how much of it is mapped is up to the system.
func measured() {
	code := cmdline.Run(command.ProcessEnv(""), newRoot, os.Args[1:])
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "VmHWM:") || strings.HasPrefix(line, "RssFile:") {
			fmt.Fprint(os.Stderr, line)
		}
	}
	os.Exit(code)
}

// plainServer is a SOAP server that knows nothing of hhfr: it answers every request with its own
// body, and an offer with a fault. It writes its URL to the named file, and ends with the test.
func plainServer() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	if err := os.WriteFile(os.Args[1], []byte("http://"+l.Addr().String()+"/echo"), 0o600); err != nil {
		panic(err)
	}
	go servePlain(l)
	<-ctx.Done()
}

// TestScripts runs testdata/script: whole command lines, as users type them.
func TestScripts(t *testing.T) {
	dir := shared.Testdata(t, "script")
	shared.Files(t, dir, func(p string) bool { return strings.HasSuffix(p, ".txtar") })
	testscript.Run(t, testscript.Params{
		Dir: dir,
		Setup: func(env *testscript.Env) error {
			env.Setenv("SOAP", shared.Testdata(t, "soap"))
			env.Setenv("PCAP", shared.Testdata(t, "pcap"))
			env.Setenv("INSTALL", filepath.Join(dir, "..", "..", "scripts", "termux-install.sh"))
			env.Setenv("HHFR_SHARED", "")
			env.Setenv(printedDir, os.Getenv(printedDir))
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, ".state"))
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"address":         address,
			"exits":           exits,
			"portbusy":        portBusy,
			"cut":             cut,
			"host":            host,
			"androidresolver": androidResolver,
			"dnsserver":       startDNS,
			"certificates": func(ts *testscript.TestScript, _ bool, _ []string) {
				writeCertificates(t, ts.MkAbs("."))
			},
		},
	})
}

// address waits for what a server writes and puts its URL into the variable URL: `address FILE`,
// the JSON of hhfr serve, proxy or context serve, or a URL.
func address(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	for range 6000 {
		b, err := os.ReadFile(path)
		text := strings.TrimSpace(string(b))
		if err == nil && strings.HasPrefix(text, "http") {
			ts.Setenv("URL", text)
			return
		}
		var serve struct {
			Services  map[string]serve.ServiceLine `json:"services"`
			URL       string                       `json:"url"`
			Addresses map[string]string            `json:"addresses"`
		}
		if err == nil && json.Unmarshal(b, &serve) == nil {
			ts.Setenv("URL", cmp.Or(serve.Services["echo"].URL, serve.URL, "http://"+serve.Addresses["http"]))
			return
		}
		time.Sleep(10 * time.Millisecond) // the only word a process gives is its file
	}
	ts.Fatalf("%s: no address after a minute", args[0])
}

// exits runs hhfr and checks its exit code: `exits CODE ARG…`, or `exits CODE,CODE ARG…` if the
// machine decides which.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec("hhfr", args[1:]...)
	code := "0"
	if err != nil {
		code = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if !slices.Contains(strings.Split(args[0], ","), code) {
		ts.Fatalf("exit code %s, not %s", code, args[0])
	}
}

// portBusy holds a port until the script ends, and names it BUSY.
func portBusy(ts *testscript.TestScript, _ bool, _ []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { _ = l.Close() })
	ts.Setenv("BUSY", l.Addr().String())
}

// cut copies the first bytes of a file: `cut FROM TO BYTES`.
func cut(ts *testscript.TestScript, _ bool, args []string) {
	b, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	var n int
	_, err = fmt.Sscan(args[2], &n)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b[:n], 0o600))
}

// TestHelpHasExamples: every command has an explanation and example lines.
func TestHelpHasExamples(t *testing.T) {
	root := newRoot(&command.Global{})
	require.NotEmpty(t, root.Commands())
	for _, c := range root.Commands() {
		if c.Name() == "help" || c.Name() == "completion" {
			continue
		}
		require.Contains(t, c.Example, "hhfr "+c.Name())
	}
}
