package nats_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/bolt"
	"github.com/hhfr/hhfr/pkg/ctxstore/nats"
	"github.com/hhfr/hhfr/pkg/ctxstore/transfer"
)

const uri = "urn:example:1"

func TestNames(t *testing.T) {
	for _, tc := range []struct{ name, says string }{
		{"nats://", "is no host"},
		{"nats://host", "the bucket \"\" is not made of"},
		{"nats://host/a.b", "the bucket \"a.b\" is not made of"},
		{"nats://host/a/b", "the bucket \"a/b\" is not made of"},
		{"nats://host,/a", "is no host"},
		{"nats://host:x/a", "is no host"},
		{"nats://u:secret@host/a", "takes no user and password"},
		{"nats://host/a?replicas=0", "replicas are from 1 to 5"},
		{"nats://host/a?replicas=x", "replicas are from 1 to 5"},
		{"nats://host/a?storage=disk", "storage is file or memory"},
		{"nats://host/a?replica=3", "there is no option \"replica\""},
		{"nats://host/a?%", "invalid URL escape"},
		{"tls://host/a", "is no name of a NATS bucket"},
	} {
		_, err := nats.Open(t.Context(), tc.name, nats.Config{})
		require.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.Invalid}, tc.name)
		require.ErrorContains(t, err, tc.says)
		require.NotContains(t, err.Error(), "secret")
	}
	_, err := nats.Open(t.Context(), "nats://host/a?credentials="+filepath.Join(t.TempDir(), "none"), nats.Config{})
	require.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.Invalid})
}

// What was stored is there when the server was stopped and started again; read-only handles change
// nothing, and make no bucket.
func TestWhatIsPutStays(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	s := serveOn(t, dir)
	_, err := nats.Open(ctx, "nats://one/kept", nats.Config{ReadOnly: true, Dial: s.dial})
	require.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.NotFound})
	b, err := nats.Open(ctx, "nats://one/kept", nats.Config{Dial: s.dial})
	require.NoError(t, err)
	assert.True(t, ctxstore.Persists(b))
	rev, err := b.Put(ctx, uri, []byte("one"), ctxstore.PutOptions{TTL: time.Hour})
	require.NoError(t, err)
	long := bytes.Repeat([]byte("long "), 1<<20)
	_, err = b.Put(ctx, "urn:long", long, ctxstore.PutOptions{})
	require.NoError(t, err)
	fp, err := ctxstore.Shapes{Store: b}.Put(ctx, []byte("shape"))
	require.NoError(t, err)
	require.NoError(t, b.Close())
	s.stop()

	s = serveOn(t, dir)
	r, err := nats.Open(ctx, "nats://one/kept", nats.Config{ReadOnly: true, Dial: s.dial})
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	e, err := r.Get(ctx, uri)
	require.NoError(t, err)
	assert.Equal(t, "one", string(e.Value))
	assert.Equal(t, rev, e.Revision)
	assert.False(t, e.Expires.IsZero())
	e, err = r.Get(ctx, "urn:long")
	require.NoError(t, err)
	assert.Equal(t, sha256.Sum256(long), sha256.Sum256(e.Value))
	_, err = ctxstore.Shapes{Store: r}.Get(ctx, fp)
	require.NoError(t, err)
	permission := &ctxstore.Error{Code: ctxstore.Permission}
	_, err = r.Put(ctx, uri, nil, ctxstore.PutOptions{})
	require.ErrorIs(t, err, permission)
	_, err = r.Commit(ctx, uri, rev, nil)
	require.ErrorIs(t, err, permission)
	require.ErrorIs(t, r.Delete(ctx, uri, nil), permission)

	_, err = nats.Open(ctx, "nats://one/kept?replicas=3", nats.Config{Dial: s.dial})
	require.ErrorContains(t, err, "has 1 replicas, not 3")
	assert.False(t, ctxstore.Persists(s.open(t, nats.Config{}, closed)))
}

// A bucket of which replicas may answer late, or which keeps a history, would break what a store
// promises.
func TestBucketsOfOthers(t *testing.T) {
	s := serve(t)
	for bucket, tc := range map[string]struct {
		cfg  jetstream.KeyValueConfig
		says string
	}{
		"plain":   {jetstream.KeyValueConfig{}, "may be behind"},
		"history": {jetstream.KeyValueConfig{History: 5, LimitMarkerTTL: time.Minute}, "keeps a history"},
	} {
		js, err := jetstream.New(s.connect(t))
		require.NoError(t, err)
		tc.cfg.Bucket = bucket
		_, err = js.CreateKeyValue(t.Context(), tc.cfg)
		require.NoError(t, err)
		_, err = nats.Open(t.Context(), "nats://one/"+bucket, nats.Config{Dial: s.dial})
		require.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.Invalid})
		require.ErrorContains(t, err, tc.says)
	}
}

// The entries can be read with the tools of NATS: what is in the way of that, they would see first.
func TestEntriesForOtherTools(t *testing.T) {
	s := serve(t)
	b := s.open(t, nats.Config{}, closed)
	_, err := b.Put(t.Context(), "urn:hhfr:session:0011", []byte("document"), ctxstore.PutOptions{})
	require.NoError(t, err)
	_, err = b.Put(t.Context(), "http://example.org/a?b", []byte("x"), ctxstore.PutOptions{})
	require.NoError(t, err)
	js, err := jetstream.New(s.connect(t))
	require.NoError(t, err)
	kv, err := js.KeyValue(t.Context(), "contexts")
	require.NoError(t, err)
	e, err := kv.Get(t.Context(), "hhfr.session.0011")
	require.NoError(t, err)
	assert.Equal(t, "document", string(e.Value()))
	keys, err := kv.Keys(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"hhfr.session.0011", "uri.http=3A//example=2Eorg/a=3Fb"}, keys)

	// What they put under a key that is no URI is reported, and the rest is listed.
	_, err = kv.Put(t.Context(), "mine", nil)
	require.NoError(t, err)
	_, err = kv.Put(t.Context(), "uri.=ZZ", nil)
	require.NoError(t, err)
	var got []string
	for i, err := range b.List(t.Context(), "") {
		if err != nil {
			require.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.Corrupt})
			got = append(got, "?")
			continue
		}
		got = append(got, i.URI)
	}
	assert.Equal(t, []string{"?", "http://example.org/a?b", "urn:hhfr:session:0011"}, got)
}

// A shape that this process has seen is read without the servers, and so is nothing else.
func TestShapesAreNear(t *testing.T) {
	s := serveOn(t, t.TempDir())
	b, err := nats.Open(t.Context(), "nats://one/contexts", nats.Config{Dial: s.dial, Patience: 100 * time.Millisecond})
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()
	fp, err := ctxstore.Shapes{Store: b}.Put(t.Context(), []byte("shape"))
	require.NoError(t, err)
	_, err = b.Put(t.Context(), uri, nil, ctxstore.PutOptions{})
	require.NoError(t, err)
	s.stop()
	got, err := ctxstore.Shapes{Store: b}.Get(t.Context(), fp)
	require.NoError(t, err)
	assert.Equal(t, "shape", string(got))
	away := &ctxstore.Error{Code: ctxstore.Unavailable}
	_, err = b.Get(t.Context(), uri)
	require.ErrorIs(t, err, away)
	_, err = b.Put(t.Context(), uri, nil, ctxstore.PutOptions{})
	require.ErrorIs(t, err, away)
	for _, err := range b.List(t.Context(), "") {
		require.ErrorIs(t, err, away)
	}
	_, err = b.Watch(t.Context(), "")
	require.ErrorIs(t, err, away)
}

// What bolt has and what NATS has afterwards are the same lists, and the same values.
func TestFromBolt(t *testing.T) {
	ctx := t.Context()
	from, err := bolt.Open(filepath.Join(t.TempDir(), "store.db"), bolt.Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, from.Close()) }()
	for i := range 50 {
		_, err := ctxstore.Shapes{Store: from}.Put(ctx, fmt.Appendf(nil, "shape %d", i))
		require.NoError(t, err)
		_, err = from.Put(ctx, fmt.Sprintf("urn:hhfr:session:%032x", i), fmt.Append(nil, i),
			ctxstore.PutOptions{TTL: time.Duration(i%2) * time.Hour})
		require.NoError(t, err)
	}
	_, err = from.Put(ctx, "urn:long", bytes.Repeat([]byte("long"), 1<<20), ctxstore.PutOptions{})
	require.NoError(t, err)

	var file bytes.Buffer
	_, err = transfer.Export(ctx, &file, from, "", func(err error) { t.Error(err) })
	require.NoError(t, err)
	to := serve(t).open(t, nats.Config{}, closed)
	_, err = transfer.Import(ctx, to, &file, transfer.ImportOptions{})
	require.NoError(t, err)

	list := func(s ctxstore.Store) (list []ctxstore.Info) {
		for i, err := range s.List(ctx, "") {
			require.NoError(t, err)
			a, err := from.Get(ctx, i.URI)
			require.NoError(t, err)
			b, err := to.Get(ctx, i.URI)
			require.NoError(t, err)
			require.True(t, bytes.Equal(a.Value, b.Value))
			i.Revision, i.Expires = 0, i.Expires.Truncate(time.Minute)
			list = append(list, i)
		}
		return list
	}
	want := list(from)
	assert.Len(t, want, 101)
	assert.Equal(t, want, list(to))
}

// The parts of a value go with it, and readers see whole values while it is replaced.
func TestParts(t *testing.T) {
	s := serve(t)
	b, other := s.open(t, nats.Config{}, closed), s.open(t, nats.Config{}, closed)
	value := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 3<<20+i) }
	messages := func() uint64 {
		js, err := jetstream.New(s.connect(t))
		require.NoError(t, err)
		stream, err := js.Stream(t.Context(), "KV_contexts")
		require.NoError(t, err)
		return stream.CachedInfo().State.Msgs
	}
	_, err := b.Put(t.Context(), uri, value(0), ctxstore.PutOptions{})
	require.NoError(t, err)
	written := make(chan error, 1)
	go func() {
		var err error
		for i := 1; i < 4 && err == nil; i++ {
			_, err = b.Put(t.Context(), uri, value(i), ctxstore.PutOptions{})
		}
		written <- err
	}()
	for done := false; !done; {
		select {
		case err := <-written:
			require.NoError(t, err)
			done = true
		default:
		}
		e, err := other.Get(t.Context(), uri)
		require.NoError(t, err)
		require.True(t, bytes.Equal(value(len(e.Value)-3<<20), e.Value))
	}
	assert.Equal(t, uint64(5), messages())
	rev, err := b.Put(t.Context(), uri, []byte("short"), ctxstore.PutOptions{})
	require.NoError(t, err)
	assert.Equal(t, uint64(1), messages())
	_, err = other.Commit(t.Context(), uri, rev+1, value(1))
	require.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.Conflict})
	assert.Equal(t, uint64(1), messages())
}

// closed closes a store at the end of a test.
func closed(t testing.TB, b *nats.Bucket) {
	t.Cleanup(func() { assert.NoError(t, b.Close()) })
}

// connect is a connection of a tool of NATS.
func (s served) connect(t testing.TB) *natsgo.Conn {
	t.Helper()
	nc, err := natsgo.Connect("nats://one", natsgo.SetCustomDialer(inProcess{s}))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

type inProcess struct{ served }

func (p inProcess) Dial(network, address string) (net.Conn, error) { return p.dial(network, address) }
