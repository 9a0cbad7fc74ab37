package real

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hhfr/hhfr/compare/internal/builds"
	"github.com/hhfr/hhfr/compare/internal/program"
)

// stacks are the clients and servers of testdata/interop.
type stacks struct {
	dir, sources, real, hhfr string
	java                     *program.Process
	javaMu                   sync.Mutex
	servers                  map[string]endpoint
	running                  []*program.Process
}

// endpoint is where a server is.
type endpoint struct{ host, path string }

// openStacks builds what is not built, in the checkout, and starts the servers.
func openStacks(ctx context.Context) (s *stacks, err error) {
	built, err := builds.Stacks(ctx, "java", "python", "keys", "node", "gsoap")
	if err != nil {
		return nil, err
	}
	s = &stacks{dir: built.Dir, sources: built.Sources, servers: map[string]endpoint{}}
	s.real = filepath.Join(filepath.Dir(built.Sources), "real")
	if s.hhfr, err = program.Path(); err != nil {
		return nil, err
	}
	if err := s.serve(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
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
		p, err := program.Start(ctx, s.modules(), v.command[0], v.command[1:]...)
		if err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
		s.running = append(s.running, p)
		s.servers[v.name] = endpoint{net.JoinHostPort("127.0.0.1", p.First), v.path}
		if v.name == "cxf" {
			s.java = p
		}
	}
	p, err := program.Start(ctx, nil, s.hhfr, "serve", "--listen", "127.0.0.1:0", "-o", "json")
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
			return nil, fmt.Errorf("%s said %q: %s", c.Client, out, &s.java.Errs)
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
	stop := context.AfterFunc(ctx, s.java.Kill)
	defer stop()
	if _, err := fmt.Fprintf(s.java.In, "%s %s:%s=%s\n", c.Client, c.Connections, values, url); err != nil {
		return nil, err
	}
	for {
		line, err := s.java.Out.ReadBytes('\n')
		switch {
		case err != nil:
			return nil, fmt.Errorf("java: %w: %s", err, &s.java.Errs)
		case len(line) == 1:
			return out, nil
		}
		out = append(out, line...)
	}
}

func (s *stacks) close() {
	for _, p := range s.running {
		p.End()
	}
}
