package wsrm_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
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

// A process of this test is told by these what it is: the port of the ledger, the folder of its store, and for the client how many messages it sends.
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

// process is one end: a durable engine on a socket, until its sequences are over.
func process() error {
	ctx := context.Background()
	store, err := directory.Open(os.Getenv(envStore), directory.Config{})
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	cfg := wsrm.Config{Assurance: wsrm.ExactlyOnce, Ordered: true, RTT: 5 * time.Millisecond, MinRTO: 50 * time.Millisecond, AckDelay: 5 * time.Millisecond}
	d, err := wsrm.NewDurable(cfg, store, processURI)
	if err != nil {
		return err
	}
	switch entry, err := store.Get(ctx, processURI); {
	case err == nil:
		if d, err = wsrm.RestoreDurable(cfg, store, processURI, entry.Value, entry.Revision); err != nil {
			return err
		}
	case !errors.Is(err, &ctxstore.Error{Code: ctxstore.NotFound}):
		return err
	}
	count, _ := strconv.ParseUint(os.Getenv(envCount), 10, 64)
	ledger := count == 0
	addr, local := "127.0.0.1:"+os.Getenv(envPort), "127.0.0.1:0"
	if ledger {
		local = addr
	}
	socket, err := net.ListenPacket("udp", local)
	if err != nil {
		return err
	}
	defer func() { _ = socket.Close() }()
	var peer net.Addr
	if !ledger {
		if peer, err = net.ResolveUDPAddr("udp", addr); err != nil {
			return err
		}
	}
	var wake time.Time
	do := func(actions []wsrm.Action) (deliveries []wsrm.Action) {
		for _, a := range actions {
			switch a.Kind {
			case wsrm.Transmit:
				if peer != nil {
					_, _ = socket.WriteTo(d.Engine().Codec().Append(nil, a.Packet), peer)
				}
			case wsrm.WakeAt:
				wake = a.At
			case wsrm.Deliver:
				a.Message = append([]byte(nil), a.Message...)
				deliveries = append(deliveries, a)
			case wsrm.Unknown, wsrm.Unsent, wsrm.Lost:
				panic("nothing is given up here")
			default:
			}
		}
		return deliveries
	}
	buf := make([]byte, 2000)
	var p wsrm.Packet
	for sent := d.Engine().Last(); !d.Engine().Over(); {
		for !ledger && sent < count {
			actions, err := d.Step(ctx, time.Now(), wsrm.Event{Kind: wsrm.Send, Message: binary.BigEndian.AppendUint64(nil, sent+1)})
			do(actions)
			if err != nil {
				break // there is room later
			}
			sent++
		}
		if sent == count {
			actions, _ := d.Step(ctx, time.Now(), wsrm.Event{Kind: wsrm.Close}) // refused if it is closed
			do(actions)
		}
		actions, err := d.Step(ctx, time.Now(), wsrm.Event{Kind: wsrm.Wake})
		if err != nil {
			return err
		}
		do(actions)
		until := time.Now().Add(time.Second)
		if !wake.IsZero() && wake.Before(until) {
			until = wake
		}
		if err := socket.SetReadDeadline(until); err != nil {
			return err
		}
		n, from, err := socket.ReadFrom(buf)
		if err != nil || d.Engine().Codec().Parse(buf[:n], &p) != nil {
			continue // time went by
		}
		if ledger {
			peer = from
		}
		actions, err = d.Step(ctx, time.Now(), wsrm.Event{Kind: wsrm.Arrived, Packet: &p})
		if err != nil {
			return err
		}
		for _, a := range do(actions) {
			more, err := d.Deliver(ctx, time.Now(), a, counter{})
			if err != nil {
				return err
			}
			do(more)
		}
	}
	// The last answer, for an end that waits for it.
	actions, err := d.Step(ctx, time.Now(), wsrm.Event{Kind: wsrm.Wake})
	do(actions)
	return err
}

// killProcesses has a client send messages to a ledger, two processes that are killed and started again: so often altogether, unless they are done before; at least as often as said.
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
	d, err := wsrm.RestoreDurable(wsrm.Config{Assurance: wsrm.ExactlyOnce, Ordered: true}, newDisk(), processURI, entry.Value, entry.Revision)
	require.NoError(t, err)
	assert.EqualValues(t, messages, binary.BigEndian.Uint64(d.Effect()), "the last message is in the ledger, and each came behind the one before")
	t.Logf("%d messages, %d kills of %d, %v", messages, killed, kills, time.Since(began).Round(time.Millisecond))
	assert.GreaterOrEqual(t, killed, atLeast)
}

// Two processes, killed again and again: each message has its effect once, in order, and none is missing.
func TestProcessesAreKilled(t *testing.T) { killProcesses(t, 50_000, 8, 1) }
