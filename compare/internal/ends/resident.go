package ends

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"
)

// ResidentRow is the resident memory of a command, in bytes, as the system shows it: nothing is
// given back before.
type ResidentRow struct {
	Command  string  `json:"command"`
	Sessions int     `json:"sessions"`
	Idle     float64 `json:"idle"` // each has had a message, and nothing happened for a while
	Busy     float64 `json:"busy"` // the most since then, while all are used in turn
}

// The commands by their names in the report.
const (
	ServeCommand = "hhfr serve"
	nearCommand  = "hhfr proxy, near"
	farCommand   = "hhfr proxy, far"
)

// MeasureResident measures the commands with so many sessions: clients of `hhfr serve` that have a
// stream each, and clients of plain HTTP through a pair of proxies.
func MeasureResident(
	ctx context.Context, cfg IdleConfig, sessions []int, messages [][]byte,
) (rows []ResidentRow, err error) {
	for _, n := range sessions {
		for _, measure := range []func(context.Context, IdleConfig, int, [][]byte) ([]ResidentRow, error){
			serving, proxying,
		} {
			more, err := measure(ctx, cfg, n, messages)
			if err != nil {
				return nil, fmt.Errorf("%d sessions: %w", n, err)
			}
			rows = append(rows, more...)
		}
	}
	return rows, nil
}

func serving(ctx context.Context, cfg IdleConfig, n int, messages [][]byte) (rows []ResidentRow, err error) {
	serve, err := startListening(ctx, ServeCommand, "serve")
	if serve != nil {
		defer func() { err = errors.Join(err, serve.stop()) }()
	}
	if err != nil {
		return nil, err
	}
	return used(ctx, cfg, n, messages, []*proxyProgram{serve}, []string{ServeCommand},
		func(from net.Addr, m []byte) (idleClient, error) {
			return dialIdleHHFR("http://")(ctx, from, serve.addr, m)
		})
}

func proxying(ctx context.Context, cfg IdleConfig, n int, messages [][]byte) (rows []ResidentRow, err error) {
	addr, end, err := serveHTTP(ctx, echo)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	halves, stop, err := startPair(ctx, "http://"+addr)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	return used(ctx, cfg, n, messages, halves, []string{farCommand, nearCommand},
		func(from net.Addr, m []byte) (idleClient, error) {
			t := transportFrom(from)
			c := &http.Client{Transport: t}
			use := func(m []byte) error { return post(ctx, c, halves[1].url+"/echo", m) }
			return idleClient{use, func() error { t.CloseIdleConnections(); return nil }}, use(m)
		})
}

// used opens the sessions of running commands, and reads their memory.
func used(
	ctx context.Context, cfg IdleConfig, n int, messages [][]byte, commands []*proxyProgram, names []string,
	dial func(from net.Addr, message []byte) (idleClient, error),
) (rows []ResidentRow, err error) {
	all := make([]idleClient, n)
	defer func() {
		for _, c := range all {
			if c.close != nil {
				err = errors.Join(err, c.close())
			}
		}
	}()
	if err := byAll(dialers, n, func(i int) (err error) {
		all[i], err = dial(localAddress(i), messages[i%len(messages)])
		return err
	}); err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(cfg.Idle):
	}
	for i, c := range commands {
		rows = append(rows, ResidentRow{Command: names[i], Sessions: n, Idle: c.resident()})
	}
	for range cfg.Uses {
		if err := byAll(dialers, n, func(i int) error { return all[i].use(messages[i%len(messages)]) }); err != nil {
			return nil, err
		}
		for i, c := range commands {
			rows[i].Busy = max(rows[i].Busy, c.resident())
		}
	}
	slices.Reverse(rows)
	return rows, nil
}
