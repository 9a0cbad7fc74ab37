package program

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

// Process is a program that runs until its input ends, or it gets an interrupt.
type Process struct {
	First string // line of its output
	In    io.WriteCloser
	Out   *bufio.Reader // behind that line
	Errs  Said

	cmd *exec.Cmd
}

// Said is what a process wrote to stderr so far.
type Said struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *Said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *Said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// Start starts one, which says on its first line where it is.
func Start(ctx context.Context, env []string, program string, args ...string) (*Process, error) {
	p := &Process{cmd: exec.CommandContext(ctx, program, args...)}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stderr = &p.Errs
	var err error
	if p.In, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.Out = bufio.NewReader(out)
	if p.First, err = p.Out.ReadString('\n'); err != nil {
		p.End()
		return nil, fmt.Errorf("%s: %w: %s", program, err, &p.Errs)
	}
	p.First = strings.TrimSpace(p.First)
	return p, nil
}

// Kill ends it at once.
func (p *Process) Kill() { _ = p.cmd.Process.Kill() } // or it has ended

// End ends it, in order if it can.
func (p *Process) End() {
	p.In.Close()
	_ = p.cmd.Process.Signal(os.Interrupt) // it may have ended
	timer := time.AfterFunc(10*time.Second, func() { _ = p.cmd.Process.Signal(syscall.SIGKILL) })
	_ = p.cmd.Wait() // how it ends is not measured
	timer.Stop()
}

// Told waits until it has written this to stderr.
func (p *Process) Told(ctx context.Context, what string) error {
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(p.Errs.String(), what); {
		if ctx.Err() != nil || time.Now().After(deadline) {
			return fmt.Errorf("never said %q: %s", what, &p.Errs)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}
