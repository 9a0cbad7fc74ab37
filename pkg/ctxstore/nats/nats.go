// Package nats is the context store of many nodes: a bucket of NATS JetStream. What the servers
// keep is a key-value bucket of theirs (its entries can be read and watched with their own tools),
// and an entry is one message, replaced by compare-and-set on its sequence number.
//
// Every entry is read from the leader of the bucket. Shapes, which never change, are remembered in
// this process, and read from there as long as the store lives, whatever happens to the servers;
// one that another node has deleted is then still found.
package nats

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/internal/engine"
	"github.com/hhfr/hhfr/pkg/ctxstore/internal/lease"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
)

// DefaultPatience is how long a change waits for servers that have no leader, or that restart.
const DefaultPatience = 12 * time.Second

const (
	// attempt bounds one request to a server.
	attempt = 2 * time.Second
	// firstPause and longestPause are between attempts, and between connections.
	firstPause, longestPause = 50 * time.Millisecond, time.Second
	// nearBytes is what the shapes in memory may take.
	nearBytes = 64 << 20
)

// Config of a store. The zero value works.
type Config struct {
	// ReadOnly opens a bucket that must exist, and changes nothing.
	ReadOnly bool
	// MaxBytes is the space of a bucket that is made, in bytes; 0 means [ctxstore.DefaultMaxBytes].
	// Beyond it the oldest shapes are dropped. A bucket that exists keeps its own.
	MaxBytes int64
	// Token is what the servers ask for; empty: nothing.
	Token string
	// TLS is for servers that speak it; nil means the system's roots.
	TLS *tls.Config
	// Patience is how long a call waits for servers that restart or have no leader; 0 means
	// [DefaultPatience].
	Patience time.Duration
	// Clock is the clock for times to live; nil means the machine's. The clocks of all nodes agree
	// within some seconds.
	Clock clock.Clock
	// Dial connects to a server; nil means over TCP.
	Dial func(network, address string) (net.Conn, error)
}

// Bucket implements [ctxstore.Store].
type Bucket struct {
	cfg      Config
	conn     *nats.Conn
	js       jetstream.JetStream
	stream   jetstream.Stream
	subjects string // prefix of all subjects, with the dot at its end
	max      int64  // bytes; 0: no limit
	volatile bool
	leases   *lease.Leases

	linkMu sync.Mutex
	link   context.Context // done when the connection that there is now breaks
	cut    context.CancelFunc

	near  *memory.Store // shapes
	known latest

	access   *engine.Access
	watching sync.WaitGroup
}

var (
	_ ctxstore.Store  = (*Bucket)(nil)
	_ ctxstore.Holder = (*Bucket)(nil)
)

// Open opens the bucket of a name (see [Form]), one of whose servers must answer, and makes it if
// there is none: of one replica, in files, unless the name says otherwise.
func Open(ctx context.Context, text string, cfg Config) (*Bucket, error) {
	n, err := parse(text)
	if err != nil {
		return nil, err
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.Real()
	}
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = ctxstore.DefaultMaxBytes
	}
	if cfg.Patience <= 0 {
		cfg.Patience = DefaultPatience
	}
	b := &Bucket{
		access: engine.NewAccess(text), cfg: cfg, subjects: "$KV." + n.bucket + ".",
		near: memory.New(memory.Config{MaxBytes: nearBytes}),
	}
	if cfg.ReadOnly {
		b.access.Locked = "it was " + engine.ForReading
	}
	b.relink()
	if b.conn, err = connect(n, &cfg, b.relink); err == nil {
		err = b.bind(ctx, n)
	}
	if err != nil {
		_ = b.Close()
		return nil, err
	}
	b.leases = lease.New(b, cfg.Clock)
	if !cfg.ReadOnly {
		b.watching.Go(b.sweep)
	}
	return b, nil
}

// relink has what waits for an answer over a broken connection ask again.
func (b *Bucket) relink() {
	b.linkMu.Lock()
	defer b.linkMu.Unlock()
	if b.cut != nil {
		b.cut()
	}
	b.link, b.cut = context.WithCancel(b.access.Open)
}

// linked returns the context of the connection that there is now.
func (b *Bucket) linked() context.Context {
	b.linkMu.Lock()
	defer b.linkMu.Unlock()
	return b.link
}

// connect connects to one of the servers, and to another one whenever that goes away.
func connect(n name, cfg *Config, broken func()) (*nats.Conn, error) {
	pause := func(attempts int) time.Duration {
		return min(firstPause<<min(attempts/len(n.servers), 10), longestPause)
	}
	options := []nats.Option{
		nats.Name("hhfr"), nats.Timeout(attempt), nats.MaxReconnects(-1), nats.CustomReconnectDelay(pause),
		nats.ReconnectBufSize(-1), // what is written while there is no connection fails, and is tried again
		nats.PingInterval(10 * time.Second), nats.MaxPingsOutstanding(2), nats.Token(cfg.Token),
		nats.SetCustomDialer(dialFunc(cfg.Dial)), nats.DisconnectErrHandler(func(*nats.Conn, error) { broken() }),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // it would write to stderr
		func(o *nats.Options) error {
			o.TLSConfig = cfg.TLS
			return nil
		},
	}
	if n.credentials != "" {
		if _, err := os.Stat(n.credentials); err != nil {
			return nil, &ctxstore.Error{Code: ctxstore.Invalid, At: n.servers[0], Err: err}
		}
		options = append(options, nats.UserCredentials(n.credentials))
	}
	conn, err := nats.Connect(strings.Join(n.servers, ","), options...)
	if err == nil {
		return conn, nil
	}
	at := strings.Join(n.servers, ",")
	if errors.Is(err, nats.ErrAuthorization) {
		return nil, &ctxstore.Error{
			Code: ctxstore.Permission, At: at, Err: err, Hint: "--store-token, or ?credentials=FILE",
		}
	}
	return nil, &ctxstore.Error{
		Code: ctxstore.Unavailable, At: at, Err: err, Hint: "does a NATS server run there?",
	}
}

// dialFunc is a function as a [nats.CustomDialer].
type dialFunc func(network, address string) (net.Conn, error)

func (d dialFunc) Dial(network, address string) (net.Conn, error) {
	if d == nil {
		return net.DialTimeout(network, address, attempt)
	}
	return d(network, address)
}

// bind finds the bucket, or makes it.
func (b *Bucket) bind(ctx context.Context, n name) (err error) {
	if b.js, err = jetstream.New(b.conn); err != nil {
		return b.failed(ctx, "", err)
	}
	stream := "KV_" + n.bucket
	err = b.try(ctx, "", func(ctx context.Context) error {
		b.stream, err = b.js.Stream(ctx, stream)
		if errors.Is(err, jetstream.ErrStreamNotFound) && !b.cfg.ReadOnly {
			b.stream, err = b.js.CreateStream(ctx, b.streamConfig(stream, n))
		}
		return err
	})
	if err != nil {
		return err
	}
	cfg := b.stream.CachedInfo().Config
	b.max, b.volatile = max(cfg.MaxBytes, 0), cfg.Storage == jetstream.MemoryStorage
	if problem := unfit(cfg, n); problem != "" {
		return &ctxstore.Error{
			Code: ctxstore.Invalid, At: b.access.At, Err: errors.New("the bucket " + problem),
			Hint: "name another one, and hhfr makes it",
		}
	}
	return nil
}

func (b *Bucket) streamConfig(stream string, n name) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: stream, Subjects: []string{b.subjects + ">"}, Description: "contexts of hhfr",
		Replicas: max(n.replicas, 1), Storage: n.storage, MaxBytes: b.cfg.MaxBytes, MaxMsgs: -1, MaxConsumers: -1,
		MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, AllowRollup: true, DenyDelete: true,
		AllowMsgTTL: true, SubjectDeleteMarkerTTL: markerLife, Duplicates: 2 * b.cfg.Patience,
	}
}

// unfit says what is wrong with a bucket that somebody else made; empty: nothing.
func unfit(c jetstream.StreamConfig, n name) string {
	switch {
	case c.MaxMsgsPerSubject != 1:
		return "keeps a history"
	case c.AllowDirect:
		return "lets replicas answer that may be behind (allow_direct)"
	case !c.AllowMsgTTL:
		return "has no times to live (allow_msg_ttl)"
	case c.Discard != jetstream.DiscardNew:
		return "drops what is old without being asked"
	case n.replicas != 0 && c.Replicas != n.replicas:
		return fmt.Sprintf("has %d replicas, not %d", c.Replicas, n.replicas)
	}
	return ""
}

// Close implements [ctxstore.Store].
func (b *Bucket) Close() error {
	if b.leases != nil {
		b.leases.Close()
	}
	b.access.Shut()
	b.watching.Wait()
	if b.conn != nil {
		b.conn.Close()
	}
	return b.near.Close()
}

// Volatile reports whether the servers forget everything when they end (see [ctxstore.Persists]).
func (b *Bucket) Volatile() bool { return b.volatile }

// Hold implements [ctxstore.Holder]. An entry whose holder died without releasing it is free after
// some seconds.
func (b *Bucket) Hold(uri string) (release func(), err error) { return b.leases.Hold(uri) }

// errPatience: the servers did not answer in time.
var errPatience = errors.New("no server answered in time")

// try calls f until it succeeds or fails for good; what passes by itself is waited for.
func (b *Bucket) try(ctx context.Context, uri string, f func(ctx context.Context) error) error {
	all, cancel := context.WithTimeoutCause(ctx, b.cfg.Patience, errPatience)
	defer cancel()
	defer context.AfterFunc(b.access.Open, cancel)()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		once, done := context.WithTimeout(all, attempt)
		unlink := context.AfterFunc(b.linked(), done)
		err := f(once)
		unlink()
		cut := once.Err() != nil
		done()
		if err == nil || !cut && !passes(err) {
			return b.failed(ctx, uri, err)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-all.Done():
			timer.Stop()
			return b.failed(ctx, uri, err)
		}
	}
}
