package sdnotify_test

import (
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/sdnotify"
)

func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for _, p := range pairs {
			if value, ok := strings.CutPrefix(p, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

func TestFromEnvironment(t *testing.T) {
	for _, tc := range []struct {
		set      []string
		listens  bool
		watchdog time.Duration
		wrong    string
	}{
		{nil, false, 0, ""},
		{[]string{"WATCHDOG_USEC=5"}, false, 0, ""},
		{[]string{"NOTIFY_SOCKET=/s"}, true, 0, ""},
		{[]string{"NOTIFY_SOCKET=@s", "WATCHDOG_USEC=2000000"}, true, 2 * time.Second, ""},
		{[]string{"NOTIFY_SOCKET=/s", "WATCHDOG_USEC=5", "WATCHDOG_PID=7"}, true, 5 * time.Microsecond, ""},
		{[]string{"NOTIFY_SOCKET=/s", "WATCHDOG_USEC=5", "WATCHDOG_PID=8"}, true, 0, ""},
		{[]string{"NOTIFY_SOCKET=s"}, false, 0, "NOTIFY_SOCKET=s is neither"},
		{[]string{"NOTIFY_SOCKET=/s", "WATCHDOG_USEC=soon"}, false, 0, "WATCHDOG_USEC=soon"},
		{[]string{"NOTIFY_SOCKET=/s", "WATCHDOG_USEC=0"}, false, 0, "WATCHDOG_USEC=0"},
		{[]string{"NOTIFY_SOCKET=/s", "WATCHDOG_USEC=9223372036854775807"}, false, 0, "WATCHDOG_USEC"},
	} {
		n, err := sdnotify.FromEnvironment(7, environment(tc.set...))
		if tc.wrong != "" {
			assert.ErrorContains(t, err, tc.wrong)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, tc.listens, n.Listens(), tc.set)
		assert.Equal(t, tc.watchdog, n.Watchdog(), tc.set)
	}
}

// Each change is one datagram, whatever is in the texts.
func TestDatagrams(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no sockets of datagrams in the file system")
	}
	name := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	require.NoError(t, err)
	defer l.Close()
	n, err := sdnotify.FromEnvironment(7, environment("NOTIFY_SOCKET="+name))
	require.NoError(t, err)
	defer n.Close()
	for _, tc := range []struct {
		send func() error
		want string
	}{
		{func() error { return n.Ready("a\nREADY=0") }, `^READY=1\nSTATUS=a READY=0$`},
		{n.Reloading, `^RELOADING=1(\nMONOTONIC_USEC=\d+)?$`},
		{func() error { return n.Status("b") }, `^STATUS=b$`},
		{n.Alive, `^WATCHDOG=1$`},
		{n.Stopping, `^STOPPING=1$`},
	} {
		require.NoError(t, tc.send())
		b := make([]byte, 1000)
		size, err := l.Read(b)
		require.NoError(t, err)
		assert.Regexp(t, tc.want, string(b[:size]))
	}
	require.NoError(t, l.Close())
	assert.ErrorContains(t, n.Alive(), "service manager")
	assert.NoError(t, new(sdnotify.Notifier).Alive())
}
