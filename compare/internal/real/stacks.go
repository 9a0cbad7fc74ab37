package real

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hhfr/hhfr/compare/internal/program"
)

// stacks are the clients and servers of testdata/interop, built below bin of the checkout, where
// they stay for the next run.
type stacks struct {
	dir, sources, real, hhfr string
	java                     *process
	javaMu                   sync.Mutex
	servers                  map[string]endpoint
	running                  []*process
}

// endpoint is where a server is.
type endpoint struct{ host, path string }

// builds are what can be built at once.
var builds = [][]string{{"java"}, {"python", "keys"}, {"node", "gsoap"}}

// openStacks builds what is not built, in the checkout, and starts the servers.
func openStacks(ctx context.Context) (s *stacks, err error) {
	checkout, err := program.Checkout()
	if err != nil {
		return nil, err
	}
	s = &stacks{dir: filepath.Join(checkout, "bin", "stacks"), servers: map[string]endpoint{}}
	s.sources = filepath.Join(checkout, "testdata", "interop", "stacks")
	s.real = filepath.Join(checkout, "testdata", "interop", "real")
	if err := s.build(ctx); err != nil {
		return nil, err
	}
	if s.hhfr, err = program.Path(); err != nil {
		return nil, err
	}
	if err := s.serve(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// build runs build.sh, unless it ran for the same sources.
func (s *stacks) build(ctx context.Context) error {
	sum := sha256.New()
	files, err := filepath.Glob(filepath.Join(s.sources, "*"))
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		_, _ = sum.Write(text) // never fails
	}
	built := filepath.Join(s.dir, "built")
	stamp := hex.EncodeToString(sum.Sum(nil))
	if old, err := os.ReadFile(built); err == nil && string(old) == stamp {
		return nil
	}
	if err := errors.Join(os.RemoveAll(s.dir), os.MkdirAll(s.dir, 0o755)); err != nil {
		return err
	}
	failed := make([]error, len(builds))
	var wait sync.WaitGroup
	for i, parts := range builds {
		wait.Go(func() {
			args := append([]string{filepath.Join(s.sources, "build.sh"), s.dir}, parts...)
			failed[i] = output(exec.CommandContext(ctx, "sh", args...))
		})
	}
	wait.Wait()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	return os.WriteFile(built, []byte(stamp), 0o644)
}

// output runs a command; its error has what it said.
func output(c *exec.Cmd) error {
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(c.Args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

func (s *stacks) python() string { return filepath.Join(s.dir, "venv", "bin", "python") }
func (s *stacks) wsdl() string   { return filepath.Join(s.sources, "stacks.wsdl") }

// modules is the environment of node.
func (s *stacks) modules() []string {
	return []string{"NODE_PATH=" + filepath.Join(s.dir, "node_modules")}
}

// serve starts the servers. CXF is that of the Java process, which has clients, too.
func (s *stacks) serve(ctx context.Context) (err error) {
	key, cert := filepath.Join(s.dir, "key.pem"), filepath.Join(s.dir, "cert.pem")
	for _, v := range []struct {
		name, path string
		command    []string
	}{
		{"http.server", "/", []string{s.python(), filepath.Join(s.real, "http_server.py")}},
		{"node-soap", "/", []string{"node", "--no-deprecation", filepath.Join(s.real, "node_server.js"), s.wsdl()}},
		{"gsoap", "/gsoap/plain", []string{filepath.Join(s.dir, "gsoap"), "server", key, cert}},
		{"cxf", "/cxf/plain", []string{"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dfile.encoding=UTF-8",
			"-Djava.util.logging.config.file=" + filepath.Join(s.sources, "quiet.properties"),
			"-cp", filepath.Join(s.dir, "classes") + string(filepath.ListSeparator) + filepath.Join(s.dir, "lib", "*"),
			"Stacks", key, cert, key}},
	} {
		p, err := start(ctx, s.modules(), v.command[0], v.command[1:]...)
		if err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
		s.running = append(s.running, p)
		s.servers[v.name] = endpoint{net.JoinHostPort("127.0.0.1", p.first), v.path}
		if v.name == "cxf" {
			s.java = p
		}
	}
	p, err := start(ctx, nil, s.hhfr, "serve", "--listen", "127.0.0.1:0", "-o", "json")
	if err != nil {
		return err
	}
	s.running = append(s.running, p)
	s.servers["serve"], err = s.httpOf(p, "/records")
	return err
}

// call has a client make the calls of a file, and returns what each took.
func (s *stacks) call(ctx context.Context, c Cell, values, url string) (took []time.Duration, err error) {
	var out []byte
	switch c.Client {
	case "cxf", "urlconnection":
		out, err = s.callJava(ctx, c, values, url)
	case "gsoap":
		out, err = s.run(ctx, filepath.Join(s.dir, "gsoap"), c.Connections, values, url)
	case "node-soap":
		out, err = s.run(ctx, "node", "--no-deprecation", filepath.Join(s.real, "node_client.js"), c.Connections,
			values, s.wsdl(), url)
	default:
		out, err = s.run(ctx, s.python(), filepath.Join(s.real, "python_client.py"), c.Client, c.Connections, values,
			s.wsdl(), url)
	}
	if err != nil {
		return nil, err
	}
	for _, word := range strings.Fields(string(out)) {
		micros, err := strconv.Atoi(word)
		if err != nil {
			return nil, fmt.Errorf("%s said %q: %s", c.Client, out, &s.java.errs)
		}
		took = append(took, time.Duration(micros)*time.Microsecond)
	}
	if len(took) != c.Calls {
		return nil, fmt.Errorf("%s made %d calls", c.Client, len(took))
	}
	return took, nil
}

func (s *stacks) run(ctx context.Context, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), s.modules()...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, bytes.TrimSpace(errs.Bytes()))
	}
	return out, nil
}

func (s *stacks) callJava(ctx context.Context, c Cell, values, url string) (out []byte, err error) {
	s.javaMu.Lock()
	defer s.javaMu.Unlock()
	stop := context.AfterFunc(ctx, func() { _ = s.java.cmd.Process.Kill() }) // or it has ended
	defer stop()
	if _, err := fmt.Fprintf(s.java.in, "%s %s:%s=%s\n", c.Client, c.Connections, values, url); err != nil {
		return nil, err
	}
	for {
		line, err := s.java.out.ReadBytes('\n')
		switch {
		case err != nil:
			return nil, fmt.Errorf("java: %w: %s", err, &s.java.errs)
		case len(line) == 1:
			return out, nil
		}
		out = append(out, line...)
	}
}

func (s *stacks) close() {
	for _, p := range s.running {
		p.end()
	}
}
