package real

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a program that runs until its input ends, or it gets an interrupt.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	first string // line of its output
	errs  said
}

// said is what a process wrote to stderr so far.
type said struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// start starts one, which says on its first line where it is.
func start(ctx context.Context, env []string, program string, args ...string) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, program, args...)}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stderr = &p.errs
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if p.first, err = p.out.ReadString('\n'); err != nil {
		p.end()
		return nil, fmt.Errorf("%s: %w: %s", program, err, &p.errs)
	}
	p.first = strings.TrimSpace(p.first)
	return p, nil
}

// end ends it, in order if it can.
func (p *process) end() {
	p.in.Close()
	_ = p.cmd.Process.Signal(os.Interrupt) // it may have ended
	timer := time.AfterFunc(10*time.Second, func() { _ = p.cmd.Process.Signal(syscall.SIGKILL) })
	_ = p.cmd.Wait() // how it ends is not measured
	timer.Stop()
}

// told waits until it has written this to stderr.
func (p *process) told(ctx context.Context, what string) error {
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(p.errs.String(), what); {
		if ctx.Err() != nil || time.Now().After(deadline) {
			return fmt.Errorf("never said %q: %s", what, &p.errs)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}
