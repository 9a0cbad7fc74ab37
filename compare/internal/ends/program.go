package ends

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hhfr/hhfr/compare/internal/program"
)

// proxyProgram is a running hhfr proxy, or another command that listens.
type proxyProgram struct {
	process
	addr, url string // where clients connect
}

// startProxy starts one with further flags.
func startProxy(ctx context.Context, upstream string, flags ...string) (*proxyProgram, error) {
	args := append([]string{"proxy", "--upstream", upstream, "--store", "mem:"}, flags...)
	return startListening(ctx, hhfrProxy, args...)
}

// startListening starts a command of hhfr at a free port. After an error it may run all the same.
func startListening(ctx context.Context, name string, args ...string) (*proxyProgram, error) {
	hhfr, err := program.Path()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, hhfr, append(args, "--listen", "127.0.0.1:0", "-o", "json", "-q")...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &proxyProgram{process: process{name: name, cmd: cmd}}
	var said struct{ Addresses map[string]string }
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&said); err != nil {
		return p, fmt.Errorf("hhfr %s does not say where it listens: %w", args[0], err)
	}
	p.addr = said.Addresses["http"]
	p.url = "http://" + p.addr
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

// Pair starts two hhfr proxies in front of a server that echoes, and waits until the near one sends
// everything over a stream: it refuses to do otherwise. urls are those of far and near.
func Pair(ctx context.Context, server string) (urls [2]string, stop func() error, err error) {
	halves, stop, err := startPair(ctx, server)
	for i, h := range halves {
		urls[i] = h.url
	}
	return urls, stop, err
}

// startPair is Pair; the far half is the first.
func startPair(ctx context.Context, server string) (halves []*proxyProgram, stop func() error, err error) {
	stop = func() (err error) {
		for _, h := range slices.Backward(halves) {
			err = errors.Join(err, h.stop())
		}
		return err
	}
	for _, flags := range [][]string{nil, {"--require-hhfr"}} {
		h, err := startProxy(ctx, server, flags...)
		if h != nil {
			halves = append(halves, h)
		}
		if err != nil {
			return nil, nil, errors.Join(err, stop())
		}
		server = h.url
	}
	const agreed = 10 * time.Second
	message := []byte(`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body/></s:Envelope>`)
	for began := time.Now(); ; time.Sleep(agreed / 1000) {
		err := post(ctx, http.DefaultClient, server+"/", message)
		if err == nil {
			return halves, stop, nil
		}
		if time.Since(began) > agreed {
			return nil, nil, errors.Join(err, stop())
		}
	}
}
