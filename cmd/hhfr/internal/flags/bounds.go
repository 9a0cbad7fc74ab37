// Package flags declares flags that several commands have, and the types of their values.
package flags

import (
	"errors"
	"time"

	"github.com/spf13/pflag"
)

// Sync has a command say how far apart sync frames are at most.
func Sync(f *pflag.FlagSet, to *Size) {
	*to = 1 << 20
	f.Var(to, "sync", "maximum bytes between sync frames, up to 1MiB; from 64KiB on a cheap one is sent")
}

// FlushDelay has a command say how long its streams wait for more to send.
func FlushDelay(f *pflag.FlagSet, to *time.Duration) {
	f.DurationVar(to, "flush-delay", 0,
		"how long what is sent on a stream waits for more to go in one packet with; 0: it goes at once")
}

// ErrNegativeFlushDelay refuses a value of --flush-delay.
var ErrNegativeFlushDelay = errors.New("--flush-delay is 0 or more")

// Seed declares --seed of what makes samples of messages.
func Seed(f *pflag.FlagSet, to *uint64) {
	f.Uint64Var(to, "seed", 0, "choice of all that may differ in samples; 0: all that is optional, always the same")
}

// Out declares --out.
func Out(f *pflag.FlagSet, to *string, value string) {
	f.StringVar(to, "out", value, "file to write; - is stdout")
}

// MaxPerPeer has a command say how many connections one address may have. more is added to its
// help.
func MaxPerPeer(f *pflag.FlagSet, to *int, value int, more string) {
	f.IntVar(to, "max-per-peer", value,
		"maximum number of connections of one address, or of one IPv6 network of 64 bits; what is beyond gets status "+
			"503"+more)
}

// ErrMaxPerPeer refuses a value of --max-per-peer.
var ErrMaxPerPeer = errors.New("--max-per-peer is at least 1")
