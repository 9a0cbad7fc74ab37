//go:build soak

package engines_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/engines"
	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// natsFolder names the folder of the NATS server that a child process is.
const natsFolder = "HHFR_SOAK_NATS"

func TestMain(m *testing.M) {
	if dir := os.Getenv(natsFolder); dir != "" {
		natsServer(dir)
		return
	}
	os.Exit(m.Run())
}

// natsServer is a NATS server that prints its address, and ends when nobody writes to it any more.
func natsServer(dir string) {
	s, err := server.NewServer(&server.Options{
		ServerName: "one", Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoSigs: true,
		NoLog: true,
	})
	if err != nil {
		panic(err)
	}
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		panic("no NATS server")
	}
	fmt.Println(s.ClientURL())
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
	s.Shutdown()
	s.WaitForShutdown()
}

// startNATS starts a server in a process of its own, and returns the name of a bucket there.
func startNATS(t *testing.T) string {
	program := exec.CommandContext(t.Context(), os.Args[0])
	program.Env = append(os.Environ(), natsFolder+"="+t.TempDir())
	program.Stderr = os.Stderr
	in, err := program.StdinPipe()
	require.NoError(t, err)
	out, err := program.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, program.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = program.Wait()
	})
	url, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(url) + "/contexts"
}

// entriesOf returns how many shapes and sessions the test puts into a store: so many, or those of
// HHFR_SOAK_SHAPES, and a tenth of that.
func entriesOf(t *testing.T, shapes int) (_, sessions int) {
	if text := os.Getenv("HHFR_SOAK_SHAPES"); text != "" {
		var err error
		shapes, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	return shapes, shapes / 10
}

// shapeEntry and sessionEntry are the entries of a number.
func shapeEntry(n int) (uri string, value []byte) {
	value = fmt.Appendf(nil, "shape %d %s", n, strings.Repeat("markup ", 30))
	return ctxstore.ShapeURI(sha256.Sum256(value)), value
}

func sessionEntry(n int) (uri string, value []byte) {
	sum := sha256.Sum256(fmt.Appendf(nil, "session %d", n))
	return ctxstore.SessionURI([16]byte(sum[:16])), fmt.Appendf(nil, "%d %s", n, strings.Repeat("agreed ", 120))
}

// put puts entries [from, to) into a store, several at a time.
func put(t *testing.T, store ctxstore.Store, from, to int, entry func(int) (string, []byte), o ctxstore.PutOptions) {
	const writers = 16
	var wait sync.WaitGroup
	for w := range writers {
		wait.Go(func() {
			for n := from + w; n < to && !t.Failed(); n += writers {
				uri, value := entry(n)
				_, err := store.Put(t.Context(), uri, value, o)
				assert.NoError(t, err)
			}
		})
	}
	wait.Wait()
	require.False(t, t.Failed())
}

// lookUp returns the median time to get entries at random, all of which are as they were put.
func lookUp(t *testing.T, store ctxstore.Store, many int, entry func(int) (string, []byte)) time.Duration {
	const looks = 2000
	random := rand.New(rand.NewPCG(1, 2))
	times := make([]time.Duration, looks)
	for i := range times {
		uri, value := entry(random.IntN(many))
		began := time.Now()
		got, err := store.Get(t.Context(), uri)
		times[i] = time.Since(began)
		require.NoError(t, err)
		require.Equal(t, value, got.Value)
	}
	slices.Sort(times)
	return times[looks/2]
}

// heap is the memory that is in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A store with a million shapes and 100 000 sessions: looking one up takes as long as with a tenth
// of that, and what a node remembers is bounded by its cache. Engines that write every entry to the
// disk have a tenth of both, unless HHFR_SOAK_SHAPES says otherwise; with TMPDIR=/dev/shm a million
// takes minutes.
func TestSoakStoreSizes(t *testing.T) {
	// 64 MiB of shapes, with what a map and a list take of each.
	const cache = 192 << 20
	for _, engine := range []struct {
		name   string
		shapes int
		spec   func(*testing.T) string
	}{
		{"nats", 1_000_000, startNATS},
		{"bolt", 100_000, func(t *testing.T) string { return "bolt:" + filepath.Join(t.TempDir(), "store") }},
		{"directory", 100_000, func(t *testing.T) string { return t.TempDir() }},
	} {
		t.Run(engine.name, func(t *testing.T) {
			shapes, sessions := entriesOf(t, engine.shapes)
			at, o := engine.spec(t), engines.Options{MaxBytes: 16 << 30}
			store, err := engines.Open(t.Context(), at, o)
			require.NoError(t, err)
			defer func() { _ = store.Close() }()
			before := heap()
			hour := ctxstore.PutOptions{TTL: time.Hour}
			put(t, store, 0, shapes/10, shapeEntry, ctxstore.PutOptions{})
			put(t, store, 0, sessions/10, sessionEntry, hour)
			store = reopened(t, store, at, o)
			fewShapes := lookUp(t, store, shapes/10, shapeEntry)
			fewSessions := lookUp(t, store, sessions/10, sessionEntry)
			began := time.Now()
			put(t, store, shapes/10, shapes, shapeEntry, ctxstore.PutOptions{})
			put(t, store, sessions/10, sessions, sessionEntry, hour)
			took := time.Since(began)
			filled := heap() - before
			store = reopened(t, store, at, o)
			manyShapes := lookUp(t, store, shapes, shapeEntry)
			manySessions := lookUp(t, store, sessions, sessionEntry)
			t.Logf("%d shapes, %d sessions put in %v; look-up %v and %v, of a tenth %v and %v; %d KiB, read %d KiB",
				shapes, sessions, took.Round(time.Second), manyShapes, manySessions, fewShapes, fewSessions,
				filled>>10, (heap()-before)>>10)
			assert.Less(t, filled, int64(cache))
			assert.Less(t, manyShapes, 3*fewShapes+100*time.Microsecond)
			assert.Less(t, manySessions, 3*fewSessions+100*time.Microsecond)
		})
	}
}

// reopened closes a store and opens it again: nothing is remembered of it.
func reopened(t *testing.T, store ctxstore.Store, at string, o engines.Options) ctxstore.Store {
	require.NoError(t, store.Close())
	again, err := engines.Open(context.WithoutCancel(t.Context()), at, o)
	require.NoError(t, err)
	return again
}
