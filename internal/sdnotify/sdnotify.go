// Package sdnotify tells the service manager that started the process how it is, by the protocol of
// sd_notify(3): one datagram of lines NAME=VALUE for each change. Without such a manager it does
// nothing.
package sdnotify

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Notifier sends datagrams to a service manager; the zero value sends none. It is safe for
// concurrent use.
type Notifier struct {
	socket   string
	watchdog time.Duration

	mu   sync.Mutex
	conn *net.UnixConn // stays open, for a process that has no file descriptor left
}

// FromEnvironment returns the notifier of a process with a process id and environment variables. A
// watchdog that is meant for another process is none.
func FromEnvironment(pid int, getenv func(string) string) (*Notifier, error) {
	n := &Notifier{socket: getenv("NOTIFY_SOCKET")}
	if n.socket == "" {
		return &Notifier{}, nil
	}
	if n.socket[0] != '/' && n.socket[0] != '@' {
		return nil, fmt.Errorf("NOTIFY_SOCKET=%s is neither an absolute path nor an abstract name", n.socket)
	}
	if owner := getenv("WATCHDOG_PID"); owner != "" && owner != strconv.Itoa(pid) {
		return n, nil
	}
	text := getenv("WATCHDOG_USEC")
	if text == "" {
		return n, nil
	}
	usec, err := strconv.ParseInt(text, 10, 64)
	if err != nil || usec <= 0 || usec > int64((1<<63-1)/time.Microsecond) {
		return nil, fmt.Errorf("WATCHDOG_USEC=%s is not a number of microseconds above 0", text)
	}
	n.watchdog = time.Duration(usec) * time.Microsecond
	return n, nil
}

// Watchdog returns the time within which the manager wants to hear [Notifier.Alive] again; 0:
// never.
func (n *Notifier) Watchdog() time.Duration { return n.watchdog }

// Ready says that the process serves, also after a reload. status is a line for people.
func (n *Notifier) Ready(status string) error { return n.send("READY=1", "STATUS="+status) }

// Reloading says that the process reads its configuration again; [Notifier.Ready] follows.
func (n *Notifier) Reloading() error {
	lines := []string{"RELOADING=1"}
	if usec, ok := monotonic(); ok {
		lines = append(lines, "MONOTONIC_USEC="+strconv.FormatInt(usec, 10))
	}
	return n.send(lines...)
}

// Status gives people a line about the process.
func (n *Notifier) Status(status string) error { return n.send("STATUS=" + status) }

// Alive keeps the watchdog from ending the process.
func (n *Notifier) Alive() error { return n.send("WATCHDOG=1") }

// Stopping says that the process shuts down.
func (n *Notifier) Stopping() error { return n.send("STOPPING=1") }

func (n *Notifier) send(lines ...string) error {
	if n.socket == "" {
		return nil
	}
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(line, "\n", " ")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	err := n.open()
	if err == nil {
		// A manager that does not read must not hold up who tells it something.
		_ = n.conn.SetWriteDeadline(time.Now().Add(sendTimeout))
		_, err = n.conn.Write([]byte(strings.Join(lines, "\n")))
	}
	if err != nil {
		n.close()
		return fmt.Errorf("service manager: %w", err)
	}
	return nil
}

func (n *Notifier) open() (err error) {
	if n.conn == nil {
		n.conn, err = net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	}
	return err
}

func (n *Notifier) close() {
	if n.conn != nil {
		_ = n.conn.Close()
		n.conn = nil
	}
}

// Close sends nothing, and frees what the notifier needs; it may be used again.
func (n *Notifier) Close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.close()
}

const sendTimeout = time.Second

// Process returns the notifier of this process.
func Process() (*Notifier, error) { return FromEnvironment(os.Getpid(), os.Getenv) }
