package wsrm_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/directory"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// A process of this test is told by these what it is: the port of the ledger, the folder of its
// store, and for the client how many messages it sends.
const (
	envPort  = "WSRM_TEST_PORT"
	envStore = "WSRM_TEST_STORE"
	envCount = "WSRM_TEST_COUNT"
)

// failed is the exit code of a process that was not killed.
const failed = 3

func TestMain(m *testing.M) {
	if os.Getenv(envPort) != "" {
		if err := process(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(failed)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// counter is a ledger whose effect is the last message; one that is not the next is an error.
type counter struct{}

func (counter) Deliver(_ context.Context, tx *wsrm.Tx, message []byte) ([]byte, error) {
	var last uint64
	if len(tx.Value()) == 8 {
		last = binary.BigEndian.Uint64(tx.Value())
	}
	if got := binary.BigEndian.Uint64(message); got != last+1 {
		return nil, fmt.Errorf("message %d comes behind %d", got, last)
	}
	tx.Set(append([]byte(nil), message...))
	return nil, nil
}

const processURI = "urn:test:sequence"

// process is one end: an engine on one connection after another, until its sequences are over, or
// the peer is gone and has all.
func process() error {
	ctx := context.Background()
	store, err := directory.Open(os.Getenv(envStore), directory.Config{})
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	cfg := wsrm.Config{Assurance: wsrm.ExactlyOnce, Ordered: true, AckDelay: 5 * time.Millisecond}
	p := &party{}
	switch entry, err := store.Get(ctx, processURI); {
	case err == nil:
		p.engine, err = wsrm.Restore(cfg, store, processURI, entry.Value, entry.Revision)
		if err != nil {
			return err
		}
	case errors.Is(err, &ctxstore.Error{Code: ctxstore.NotFound}):
		if p.engine, err = wsrm.New(cfg, store, processURI); err != nil {
			return err
		}
	default:
		return err
	}
	p.count, _ = strconv.ParseUint(os.Getenv(envCount), 10, 64)
	connect, err := p.line("127.0.0.1:" + os.Getenv(envPort))
	if err != nil {
		return err
	}
	for !p.engine.Over() {
		conn, err := connect()
		if err != nil && p.parted() {
			return nil
		}
		if err != nil {
			continue
		}
		if err := p.talk(conn); err != nil {
			return err
		}
	}
	return nil
}

// party is one end. The client sends count messages; the ledger sends none.
type party struct {
	engine *wsrm.Engine
	count  uint64
	conn   net.Conn
	wake   time.Time
}

// line gives what makes the next connection, or fails when there is none for a while.
func (p *party) line(addr string) (connect func() (net.Conn, error), err error) {
	const patience = 2 * time.Second
	if p.count > 0 {
		return func() (conn net.Conn, err error) {
			for until := time.Now().Add(patience); time.Now().Before(until); {
				if conn, err = net.Dial("tcp", addr); err == nil {
					return conn, nil
				}
				time.Sleep(time.Millisecond)
			}
			return nil, err
		}, nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	return func() (net.Conn, error) {
		if err := l.(*net.TCPListener).SetDeadline(time.Now().Add(patience)); err != nil {
			return nil, err
		}
		return l.Accept()
	}, nil
}

// parted reports whether a peer that is gone may be so: all is done that either end had to send.
func (p *party) parted() bool {
	accepted, done, _ := p.engine.Positions()
	return p.engine.Closed() && accepted == done && (p.count > 0 || p.engine.RemoteEnded())
}

// talk goes on over a connection until that, or all, is over.
func (p *party) talk(conn net.Conn) error {
	events, ended := make(chan wsrm.Event, 1024), make(chan struct{})
	p.conn = conn
	defer func() {
		_ = conn.Close()
		close(ended)
	}()
	go read(conn, events, ended)
	if err := p.step(wsrm.Event{Kind: wsrm.Connected}); err != nil {
		return err
	}
	for {
		if err := p.send(); err != nil {
			return err
		}
		if err := p.step(wsrm.Event{Kind: wsrm.Wake}); err != nil {
			return err
		}
		if p.engine.Over() {
			return nil // its last word is written
		}
		until := time.Second
		if !p.wake.IsZero() {
			until = min(until, max(time.Until(p.wake), 0))
		}
		ended, err := p.listen(events, until)
		if err != nil {
			return err
		}
		if ended {
			return p.step(wsrm.Event{Kind: wsrm.Disconnected})
		}
	}
}

// listen takes in what comes within a while, and with it all that is there: it is stored together.
func (p *party) listen(events <-chan wsrm.Event, until time.Duration) (ended bool, err error) {
	late := time.After(until)
	for {
		select {
		case ev, open := <-events:
			if !open {
				return true, nil
			}
			if err := p.step(ev); err != nil {
				return false, err
			}
		case <-late:
			return false, nil
		}
		if len(events) == 0 {
			return false, nil
		}
	}
}

// send hands the engine what it takes, and closes after the last.
func (p *party) send() error {
	for p.engine.Last() < p.count {
		message := binary.BigEndian.AppendUint64(nil, p.engine.Last()+1)
		err := p.step(wsrm.Event{Kind: wsrm.Send, Message: message})
		if errors.Is(err, &wsrm.Error{Code: wsrm.Full}) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	if !p.engine.Closed() {
		return p.step(wsrm.Event{Kind: wsrm.Close})
	}
	return nil
}

// step does what the engine wants. What cannot be written is lost with its connection.
func (p *party) step(ev wsrm.Event) error {
	ctx := context.Background()
	actions, err := p.engine.Step(ctx, time.Now(), ev)
	var deliveries []wsrm.Action
	for _, a := range actions {
		switch a.Kind {
		case wsrm.Transmit, wsrm.Say:
			b := binary.AppendUvarint(nil, a.Number) // 0: it is no message
			b = binary.AppendUvarint(b, uint64(len(a.Message)))
			_, _ = p.conn.Write(append(b, a.Message...))
		case wsrm.WakeAt:
			p.wake = a.At
		case wsrm.Deliver:
			a.Message = bytes.Clone(a.Message)
			deliveries = append(deliveries, a)
		case wsrm.Unknown, wsrm.Unsent, wsrm.Lost:
			panic("nothing is given up here")
		default:
		}
	}
	for _, a := range deliveries {
		actions, err := p.engine.Deliver(ctx, time.Now(), a, counter{})
		if err != nil {
			return err
		}
		for _, a := range actions {
			if a.Kind == wsrm.WakeAt {
				p.wake = a.At
			}
		}
	}
	return err
}

// read gives what comes over a connection, until that ends.
func read(conn net.Conn, events chan<- wsrm.Event, ended <-chan struct{}) {
	defer close(events)
	r := bufio.NewReader(conn)
	for {
		number, err := binary.ReadUvarint(r)
		if err != nil {
			return
		}
		size, err := binary.ReadUvarint(r)
		if err != nil {
			return
		}
		ev := wsrm.Event{Kind: wsrm.Heard, Number: number, Message: make([]byte, size)}
		if _, err := io.ReadFull(r, ev.Message); err != nil {
			return
		}
		if number > 0 {
			ev.Kind = wsrm.Arrived
		}
		select {
		case events <- ev:
		case <-ended:
			return
		}
	}
}

// killProcesses has a client send messages to a ledger, two processes that are killed and started
// again: so often altogether, unless they are done before; at least as often as said.
func killProcesses(t *testing.T, messages, kills, atLeast int) {
	t.Helper()
	_, port, err := net.SplitHostPort(shared.Addr(t))
	require.NoError(t, err)
	stores := [2]string{t.TempDir(), t.TempDir()}
	type exit struct {
		which int
		err   error
	}
	exits := make(chan exit)
	var running [2]*exec.Cmd
	begin := func(which int) {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), envPort+"="+port, envStore+"="+stores[which])
		if which == 0 {
			cmd.Env = append(cmd.Env, envCount+"="+strconv.Itoa(messages))
		}
		cmd.Stderr = os.Stderr
		require.NoError(t, cmd.Start())
		running[which] = cmd
		go func() { exits <- exit{which, cmd.Wait()} }()
	}
	r := rand.New(rand.NewPCG(1, 2))
	began := time.Now()
	begin(0)
	begin(1)
	killed := 0
	var over [2]bool
	for !over[0] || !over[1] {
		var kill <-chan time.Time
		if killed < kills && !over[0] && !over[1] {
			kill = time.After(time.Duration(10+r.IntN(60)) * time.Millisecond)
		}
		select {
		case e := <-exits:
			if e.err == nil {
				over[e.which] = true
				continue
			}
			var status *exec.ExitError
			require.ErrorAs(t, e.err, &status)
			require.NotEqual(t, failed, status.ExitCode(), "end %d failed by itself", e.which)
			killed++
			begin(e.which)
		case <-kill:
			if err := running[r.IntN(2)].Process.Kill(); !errors.Is(err, os.ErrProcessDone) {
				require.NoError(t, err)
			}
		}
	}
	store, err := directory.Open(stores[1], directory.Config{})
	require.NoError(t, err)
	entry, err := store.Get(t.Context(), processURI)
	require.NoError(t, err)
	require.NoError(t, store.Close())
	d, err := wsrm.Restore(wsrm.Config{Assurance: wsrm.ExactlyOnce, Ordered: true}, newDisk(), processURI, entry.Value,
		entry.Revision)
	require.NoError(t, err)
	assert.EqualValues(t, messages, binary.BigEndian.Uint64(d.Effect()),
		"the last message is in the ledger, and each came behind the one before")
	t.Logf("%d messages, %d kills of %d, %v", messages, killed, kills, time.Since(began).Round(time.Millisecond))
	assert.GreaterOrEqual(t, killed, atLeast)
}

// Two processes, killed again and again: each message has its effect once, in order, and none is
// missing.
func TestProcessesAreKilled(t *testing.T) { killProcesses(t, 50_000, 8, 1) }
