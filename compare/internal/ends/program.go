package ends

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// buildHHFR builds the command hhfr of this checkout in a folder; the working folder is that of
// compare.
func buildHHFR(ctx context.Context, folder string) (program string, err error) {
	program = filepath.Join(folder, "hhfr")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/hhfr")
	cmd.Dir, cmd.Env = "..", append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("hhfr is built in the folder above compare, where this must be run: %w: %s", err, said)
	}
	return program, nil
}

// proxyProgram is a running hhfr proxy.
type proxyProgram struct {
	process
	url string // where clients connect
}

func startProxy(ctx context.Context, program, upstream string) (*proxyProgram, error) {
	cmd := exec.CommandContext(ctx, program, "proxy", "--listen", "127.0.0.1:0", "--upstream", upstream,
		"--store", "mem:", "-o", "json", "-q")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &proxyProgram{process: process{name: hhfrProxy, cmd: cmd}}
	var said struct{ Addresses map[string]string }
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&said); err != nil {
		return p, fmt.Errorf("hhfr proxy does not say where it listens: %w", err)
	}
	p.url = "http://" + said.Addresses["http"]
	return p, nil
}

// processor is what its threads have used, as the kernel says.
func (p *proxyProgram) processor() (sum float64, err error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for _, file := range threads {
		stat, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue // it has ended meanwhile
		}
		if err != nil {
			return 0, err
		}
		used, _, _ := strings.Cut(string(stat), " ")
		ns, err := strconv.ParseFloat(used, 64)
		if err != nil {
			return 0, err
		}
		sum += ns
	}
	return sum, nil
}

func (p *proxyProgram) stop() error {
	err := p.cmd.Process.Signal(os.Interrupt)
	if err == nil {
		_ = p.cmd.Wait() // the signal
	}
	return err
}
