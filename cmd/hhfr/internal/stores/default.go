package stores

import (
	"cmp"
	"context"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/internal/engines"
	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// MemoryStore is the store that ends with the process.
const MemoryStore = "mem:"

// StatesFolder is where this user's servers keep what they need again after a restart: the folder
// of the service that systemd started, or that of the user for states ($XDG_STATE_HOME); "" if
// neither is known.
func StatesFolder() string {
	if of, _, _ := strings.Cut(os.Getenv("STATE_DIRECTORY"), ":"); of != "" {
		return filepath.Join(of, "stores")
	}
	states := os.Getenv("XDG_STATE_HOME")
	home, err := os.UserHomeDir()
	switch {
	case filepath.IsAbs(states):
	case runtime.GOOS == "windows":
		states = os.Getenv("LocalAppData")
	case err == nil && filepath.IsAbs(home):
		states = filepath.Join(home, ".local", "state")
	default:
		states = ""
	}
	if states == "" {
		return ""
	}
	return filepath.Join(states, "hhfr")
}

// DefaultStore is the folder of a command that listens at an address, for the store that it is not
// told; "" if there is none. With port 0 the address is another each time, and the store is in
// memory.
func DefaultStore(command, address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "0" {
		return MemoryStore
	}
	states := StatesFolder()
	if states == "" {
		return ""
	}
	safe := func(c rune) rune {
		if c == '.' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' {
			return c
		}
		return '_'
	}
	name := command + "-" + cmp.Or(host, "all") + "-" + port
	return filepath.Join(states, strings.Map(safe, strings.ToLower(name)))
}

// DefaultStores are those of this user that there are.
func DefaultStores() []string {
	all, _ := filepath.Glob(filepath.Join(StatesFolder(), "*-*-*")) // the pattern is right
	return all
}

// OpenServer opens the store of a server, and returns its name: the one that is given or, in a
// tighter space, the default one. Where that cannot be, it is in memory.
func (s *StoreOptions) OpenServer(
	ctx context.Context, g *command.Global, command, address string,
) (_ ctxstore.Store, name string, err error) {
	if s.Spec != "" {
		store, err := s.Open(ctx, g)
		return store, s.Spec, err
	}
	name = DefaultStore(command, address)
	if name == "" {
		g.Warn("the store is in memory, as no folder is known for it: set HOME, or name one with --store")
		name = MemoryStore
	}
	size := cmp.Or(int64(s.Size), ctxstore.DefaultMaxBytes)
	store, err := s.openEngine(ctx, g, name, engines.Options{MaxBytes: size})
	if err != nil && name != MemoryStore {
		g.Warn("the store is in memory: %v; name another with --store", err)
		name = MemoryStore
		store, err = s.openEngine(ctx, g, name, engines.Options{MaxBytes: size})
	}
	if err != nil {
		return nil, "", err
	}
	return WithSpare(store, g.Logger()), name, nil
}
