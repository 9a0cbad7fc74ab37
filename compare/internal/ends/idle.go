package ends

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/hhfr/hhfr"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// host is a kind of server whose clients are idle. Server and clients are processes of their own.
type host struct {
	name  string
	serve func(context.Context, net.Listener) (end func() error, err error)
	// dial opens one client from an address of this machine, and uses it once.
	dial func(ctx context.Context, from net.Addr, addr string, message []byte) (idleClient, error)
}

// idleClient is one client of a host.
type idleClient struct {
	use   func(message []byte) error
	close func() error
}

// The kinds of servers by their names in the report.
const (
	IdleHTTP    = "net/http"
	IdleHTTPS   = "net/http in TLS"
	IdleGRPC    = "gRPC stream"
	IdleHHFR    = "hhfr, upgraded"
	IdleHHFRTLS = "hhfr in TLS, upgraded"
)

// clientsSuffix follows the name of a host in that of the process with its clients.
const clientsSuffix = " clients"

var hosts = []host{
	{IdleHTTP, serveIdleHTTP(false), dialHTTP("http://")},
	{IdleHTTPS, serveIdleHTTP(true), dialHTTP("https://")},
	{IdleGRPC, serveIdleGRPC, dialGRPC},
	{IdleHHFR, serveIdleHHFR(false), dialIdleHHFR("http://")},
	{IdleHHFRTLS, serveIdleHHFR(true), dialIdleHHFR("https://")},
}

// IdleRow is what idle sessions cost at the server: resident memory in bytes for each session
// beyond the first ones.
type IdleRow struct {
	Host     string `json:"host"`
	Sessions int    `json:"sessions"`
	// First is what the first sessions added all together.
	First float64 `json:"first"`
	// Opened: after the first message of each; Used: after many more, both when nothing has been
	// said for a moment; Idle: when nothing has been for Config.Idle.
	Opened float64 `json:"opened"`
	Used   float64 `json:"used"`
	Idle   float64 `json:"idle"`
	// Goroutines of the server for each session, idle.
	Goroutines float64 `json:"goroutines"`
	// Open and Close are how long it took until all but the first were open, and all closed, in
	// nanoseconds.
	Open  float64 `json:"open_ns"`
	Close float64 `json:"close_ns"`
}

// IdleConfig says how many sessions there are, and how they are used.
type IdleConfig struct {
	Config
	Sessions, Uses int
}

// MeasureIdle measures one host after the other.
func MeasureIdle(ctx context.Context, cfg IdleConfig) (rows []IdleRow, err error) {
	for _, h := range hosts {
		row, err := measureHost(ctx, cfg, h)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", h.name, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// firstSessions are those that come before memory is compared.
const firstSessions = 100

func measureHost(ctx context.Context, cfg IdleConfig, h host) (row IdleRow, err error) {
	server, err := start(ctx, h.name, 0, append(slices.Clone(cfg.Args), h.name, "")...)
	if err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	empty, err := server.ask(command{})
	if err != nil {
		return row, err
	}
	none := server.resident()
	clients, err := start(ctx, h.name+clientsSuffix, 0, append(slices.Clone(cfg.Args), h.name+clientsSuffix,
		empty.Addr)...)
	if err != nil {
		return row, err
	}
	row = IdleRow{Host: h.name, Sessions: cfg.Sessions}
	first := min(firstSessions, cfg.Sessions/2)
	// What lanes remember is folded when they have been silent.
	rest := func() { time.Sleep(min(cfg.Idle, 2*time.Second)) }
	settle := func() (float64, answer, error) {
		rest()
		a, err := server.ask(command{})
		return (server.resident() - none) / float64(cfg.Sessions-first), a, err
	}
	steps := func() error {
		if _, err := clients.ask(command{Count: first}); err != nil {
			return err
		}
		rest()
		if _, err := server.ask(command{}); err != nil {
			return err
		}
		row.First, none = server.resident()-none, server.resident()
		began := time.Now()
		if _, err := clients.ask(command{Count: cfg.Sessions - first}); err != nil {
			return err
		}
		row.Open = float64(time.Since(began))
		if row.Opened, _, err = settle(); err != nil {
			return err
		}
		for range cfg.Uses {
			if _, err := clients.ask(command{Use: true}); err != nil {
				return err
			}
		}
		if row.Used, _, err = settle(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(cfg.Idle):
		}
		var a answer
		if row.Idle, a, err = settle(); err != nil {
			return err
		}
		row.Goroutines = float64(a.Count-empty.Count) / float64(cfg.Sessions)
		began = time.Now()
		_, err := clients.ask(command{})
		row.Close = float64(time.Since(began))
		return err
	}
	return row, errors.Join(steps(), clients.stop())
}

// ServeIdle is the process of a server, or of its clients at addr. A server answers each order with
// its goroutines, after it has given back what memory it does not use. Clients open sessions, use
// all, or close all.
func ServeIdle(ctx context.Context, name, addr string, messages [][]byte, in io.Reader, out io.Writer) error {
	for _, h := range hosts {
		switch name {
		case h.name:
			return h.server(ctx, in, out)
		case h.name + clientsSuffix:
			return h.clients(ctx, addr, messages, in, out)
		}
	}
	return fmt.Errorf("no host %q", name)
}

func (h *host) server(ctx context.Context, in io.Reader, out io.Writer) error {
	l, err := loopback(ctx)
	if err != nil {
		return err
	}
	end, err := h.serve(ctx, l)
	if err != nil {
		return err
	}
	return errors.Join(answerAll(in, out, func(command) (answer, error) {
		debug.FreeOSMemory()
		return answer{Addr: l.Addr().String(), Count: runtime.NumGoroutine()}, nil
	}), end())
}

// perAddress is how many sessions are opened from one address: a server allows no more than 512.
const perAddress = 500

func localAddress(i int) net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+i/perAddress))} }

// dialers is how many sessions are opened or used at a time.
const dialers = 16

func (h *host) clients(ctx context.Context, addr string, messages [][]byte, in io.Reader, out io.Writer) error {
	var all []idleClient
	err := answerAll(in, out, func(o command) (answer, error) {
		switch {
		case o.Count > 0:
			before := len(all)
			all = append(all, make([]idleClient, o.Count)...)
			return answer{}, byAll(dialers, o.Count, func(i int) (err error) {
				i += before
				all[i], err = h.dial(ctx, localAddress(i), addr, messages[i%len(messages)])
				return err
			})
		case o.Use:
			return answer{}, byAll(dialers, len(all), func(i int) error {
				return all[i].use(messages[i%len(messages)])
			})
		}
		closing := all
		all = nil
		return answer{}, byAll(dialers, len(closing), func(i int) error { return closing[i].close() })
	})
	return err
}

func serveIdleHTTP(secure bool) func(context.Context, net.Listener) (func() error, error) {
	return func(_ context.Context, l net.Listener) (func() error, error) { return serveAt(l, echo, secure) }
}

func serveIdleHHFR(secure bool) func(context.Context, net.Listener) (func() error, error) {
	return func(_ context.Context, l net.Listener) (func() error, error) {
		h := &hhfr.Handler{Handler: echo}
		end, err := serveAt(l, h, secure)
		return func() error { return errors.Join(h.Close(), end()) }, err
	}
}

// serveAt serves HTTP/1.1.
func serveAt(l net.Listener, handler http.Handler, secure bool) (func() error, error) {
	server := &http.Server{Handler: handler}
	if secure {
		cert, err := selfSigned()
		if err != nil {
			return nil, err
		}
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13})
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	return func() error {
		err := server.Close()
		if served := <-done; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}, nil
}

func selfSigned() (tls.Certificate, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, err
}

// anyServer trusts the server of this measurement, which made its certificate itself.
func anyServer() *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13} //nolint:gosec // see above
}

// transportFrom connects from an address.
func transportFrom(from net.Addr) *http.Transport {
	return &http.Transport{DialContext: (&net.Dialer{LocalAddr: from}).DialContext, TLSClientConfig: anyServer()}
}

func dialHTTP(scheme string) func(context.Context, net.Addr, string, []byte) (idleClient, error) {
	return func(ctx context.Context, from net.Addr, addr string, m []byte) (idleClient, error) {
		t := transportFrom(from)
		c := &http.Client{Transport: t}
		use := func(m []byte) error { return post(ctx, c, scheme+addr+"/echo", m) }
		return idleClient{use, func() error { t.CloseIdleConnections(); return nil }}, use(m)
	}
}

func serveIdleGRPC(_ context.Context, l net.Listener) (func() error, error) {
	s := grpc.NewServer()
	s.RegisterService(&description, &grpcServer{})
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	return func() error { s.Stop(); return <-done }, nil
}

func dialGRPC(ctx context.Context, _ net.Addr, addr string, m []byte) (c idleClient, err error) {
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return c, err
	}
	s, err := conn.NewStream(ctx, &bidiStream, "/"+service+"/"+bidiName)
	if err != nil {
		return c, errors.Join(err, conn.Close())
	}
	use := func(m []byte) error {
		if err := s.SendMsg(&bytesValue{Value: m}); err != nil {
			return err
		}
		return s.RecvMsg(new(bytesValue))
	}
	return idleClient{use, conn.Close}, use(m)
}

// dialing guards http.DefaultTransport, whose connections a client of hhfr has.
var dialing sync.Mutex

func dialIdleHHFR(scheme string) func(context.Context, net.Addr, string, []byte) (idleClient, error) {
	return func(ctx context.Context, from net.Addr, addr string, m []byte) (idleClient, error) {
		cfg := &hhfr.Config{TLS: anyServer(), Mode: negotiate.FirstCall}
		dialing.Lock()
		http.DefaultTransport = transportFrom(from)
		c, plain, err := dialHHFR(ctx, scheme+addr+"/echo", cfg)
		dialing.Unlock()
		if err != nil {
			return idleClient{}, err
		}
		use := func(m []byte) error {
			err := errors.Join(call(ctx, c, m), plain())
			if err == nil && c.Counters().Received.Messages == 0 {
				err = errors.New("a session has no stream")
			}
			return err
		}
		return idleClient{use, c.Close}, use(m)
	}
}
