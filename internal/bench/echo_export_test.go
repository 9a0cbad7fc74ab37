package bench

import (
	"context"

	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
)

// echoFloats are the items of a message of [Echo].
const echoFloats = 10

// Echo runs one session of n messages of ten floats that are echoed, on a link. Neither peer knows
// anything of the other, except what the way implies. ticks is the clock of link and streams: in a
// bubble of testing/synctest it is virtual, and the times contain no computing. Errors: ErrConfig
// for an unknown way or invalid n; those of link.ParseProfile and link.Relay; that of the session.
func Echo(ctx context.Context, ticks clock.Clock, linkProfile string, way SessionWay, n int) (c Cell, err error) {
	return Virtual(ctx, ticks, linkProfile, "echo", echoFloats, way, n)
}

// Virtual is Echo for messages of any service and size.
func Virtual(ctx context.Context, ticks clock.Clock, linkProfile, service string, size int, way SessionWay, n int) (
	c Cell, err error,
) {
	cfg := SessionConfig{Services: []string{service}, Ways: []SessionWay{way}, Counts: []int{n}, Transport: "tcp",
		Repeat: 1}
	if err := cfg.check(); err != nil {
		return c, err
	}
	profile, err := link.ParseProfile(linkProfile)
	if err != nil {
		return c, err
	}
	m, err := way.manner()
	if err != nil {
		return c, err
	}
	store := memory.New(memory.Config{})
	defer func() { _ = store.Close() }()
	s := trial{service: service, size: size, n: n, way: way, manner: m, transport: "tcp", there: newKnown(store)}
	s.on(profile)
	return s.live(ctx, ticks)
}
