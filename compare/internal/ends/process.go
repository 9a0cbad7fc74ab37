package ends

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"
)

// command is a line that a process reads, and answer the line that it writes.
type command struct {
	Least time.Duration `json:"least,omitempty"`
	Count int           `json:"count,omitempty"`
	Use   bool          `json:"use,omitempty"`
}

type answer struct {
	sample
	Addr  string `json:"addr,omitempty"`
	Count int    `json:"count,omitempty"`
	Err   string `json:"err,omitempty"`
}

// Serve is the process of a contestant: it measures whenever it is told to by a line of in, until
// in ends.
func Serve(ctx context.Context, name string, messages [][]byte, in io.Reader, out io.Writer) error {
	at := slices.IndexFunc(ways, func(w pathway) bool { return w.name == name })
	if at < 0 {
		return fmt.Errorf("no contestant %q", name)
	}
	c, err := ways[at].open(ctx, messages)
	if err != nil {
		return err
	}
	return errors.Join(answerAll(in, out, func(o command) (answer, error) {
		s, err := c.measure(o.Least)
		return answer{sample: s}, err
	}), c.close())
}

// answerAll answers orders until there are no more.
func answerAll(in io.Reader, out io.Writer, do func(command) (answer, error)) error {
	reply := json.NewEncoder(out)
	for orders := json.NewDecoder(in); ; {
		var o command
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		a, err := do(o)
		if err != nil {
			a.Err = err.Error()
		}
		if err := reply.Encode(a); err != nil {
			return err
		}
	}
}

// process is a running contestant.
type process struct {
	name   string
	cmd    *exec.Cmd
	orders *json.Encoder
	in     io.Closer
	reply  *json.Decoder
}

// start runs this program again, as the contestant that args select, with so many processors; 0:
// all.
func start(ctx context.Context, name string, processors int, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	if processors > 0 {
		cmd.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", processors))
	}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &process{name, cmd, json.NewEncoder(in), in, json.NewDecoder(bufio.NewReader(out))}, nil
}

func (p *process) ask(o command) (a answer, err error) {
	if err = p.orders.Encode(o); err == nil {
		err = p.reply.Decode(&a)
	}
	if err == nil && a.Err != "" {
		err = errors.New(a.Err)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", p.name, err)
	}
	return a, err
}

// stop lets the process end by itself.
func (p *process) stop() error { return errors.Join(p.in.Close(), p.cmd.Wait()) }

// memory reads a figure of the process from the system, in bytes: "VmRSS:" is what is in RAM now,
// "VmHWM:" the most that ever was. 0 where the system does not say.
func (p *process) memory(figure string) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, found := bytes.Cut(status, []byte(figure))
	fields := bytes.Fields(rest)
	if !found || len(fields) == 0 {
		return 0
	}
	kib, err := strconv.ParseFloat(string(fields[0]), 64)
	if err != nil {
		return 0
	}
	return kib * 1024
}

func (p *process) resident() float64 { return p.memory("VmRSS:") }

// most is the largest resident memory that the process had.
func (p *process) most() float64 { return p.memory("VmHWM:") }

// processor asks for the processor time so far.
func (p *process) processor() (float64, error) {
	a, err := p.ask(command{})
	return a.Processor, err
}
