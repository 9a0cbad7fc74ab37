package ends

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// nginx is a running nginx, with one worker for each processor.
type nginx struct {
	cmd    *exec.Cmd
	folder string
}

const nginxConf = `
daemon off; pid %[1]s/pid; error_log %[1]s/error.log; worker_processes auto;
events { worker_connections 1024; }
http {
	access_log off; client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
	keepalive_requests 1000000000; client_max_body_size 0;
	upstream back { server %[3]s; keepalive 64; keepalive_requests 1000000000; }
	server {
		listen %[2]s;
		location / { proxy_pass http://back; proxy_http_version 1.1; proxy_set_header Connection ""; }
	}
}
`

// startNginx starts nginx in front of a host; nil where there is none on this machine.
func startNginx(ctx context.Context, upstream string) (n *nginx, addr string, err error) {
	program, err := exec.LookPath("nginx")
	if err != nil {
		return nil, "", nil
	}
	l, err := loopback(ctx)
	if err != nil {
		return nil, "", err
	}
	addr = l.Addr().String()
	if err := l.Close(); err != nil {
		return nil, "", err
	}
	folder, err := os.MkdirTemp("", "compare-nginx-")
	if err != nil {
		return nil, "", err
	}
	conf := filepath.Join(folder, "conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, nginxConf, folder, addr, upstream), 0o600); err != nil {
		return nil, "", err
	}
	n = &nginx{exec.CommandContext(ctx, program, "-p", folder, "-e", filepath.Join(folder, "error.log"), "-c", conf),
		folder}
	if err := n.cmd.Start(); err != nil {
		return nil, "", err
	}
	for range 100 {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err == nil {
			return n, addr, c.Close()
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil, "", fmt.Errorf("nginx does not listen: see %s", folder)
}

// processor is what the master and its workers have used, as the kernel says.
func (n *nginx) processor() (float64, error) {
	var sum float64
	for _, pid := range append(n.workers(), strconv.Itoa(n.cmd.Process.Pid)) {
		stat, err := os.ReadFile(filepath.Join("/proc", pid, "schedstat"))
		if err != nil {
			return 0, err
		}
		ns, err := strconv.ParseFloat(string(bytes.Fields(stat)[0]), 64)
		if err != nil {
			return 0, err
		}
		sum += ns
	}
	return sum, nil
}

func (n *nginx) workers() (pids []string) {
	master := strconv.Itoa(n.cmd.Process.Pid)
	list, err := os.ReadFile(filepath.Join("/proc", master, "task", master, "children"))
	if err != nil {
		return nil
	}
	for _, pid := range bytes.Fields(list) {
		pids = append(pids, string(pid))
	}
	return pids
}

func (n *nginx) most() float64 { return 0 }

func (n *nginx) stop() error {
	err := n.cmd.Process.Signal(os.Interrupt)
	if err == nil {
		_ = n.cmd.Wait() // the signal
	}
	return os.RemoveAll(n.folder)
}
