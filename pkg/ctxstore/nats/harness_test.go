package nats_test

import (
	"net"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats-server/v2/server/ats"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/pkg/ctxstore/nats"
)

// TestMain has the servers' clock of accesses run outside of all synctest bubbles: in one, it would
// keep time from passing.
func TestMain(m *testing.M) {
	ats.Register()
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/nats-io/nats-server/v2/server/ats.Register.func1"))
}

// served is a NATS server within the process, without a port.
type served struct{ *server.Server }

// serve runs a server until the test ends.
func serve(t testing.TB) served {
	t.Helper()
	return serveOn(t, t.TempDir())
}

// serveOn runs a server with what is in a folder.
func serveOn(t testing.TB, dir string) served {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		ServerName: "one", DontListen: true, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true,
	})
	require.NoError(t, err)
	s.Start()
	require.True(t, s.ReadyForConnections(10*time.Second))
	t.Cleanup(served{s}.stop)
	return served{s}
}

func (s served) stop() {
	s.Shutdown()
	s.WaitForShutdown()
}

func (s served) dial(string, string) (net.Conn, error) { return s.InProcessConn() }

// open opens a bucket in the server's memory.
func (s served) open(t testing.TB, cfg nats.Config, then ...func(testing.TB, *nats.Bucket)) *nats.Bucket {
	t.Helper()
	cfg.Dial = s.dial
	b, err := nats.Open(t.Context(), "nats://one/contexts?storage=memory", cfg)
	require.NoError(t, err)
	for _, f := range then {
		f(t, b)
	}
	return b
}
