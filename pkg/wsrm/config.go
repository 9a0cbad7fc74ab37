package wsrm

import (
	"fmt"
	"time"
)

// Assurance is what holds for each message (WS-RM Policy 1.1, DeliveryAssurance).
type Assurance uint8

const (
	// AtMostOnce: never twice.
	AtMostOnce Assurance = iota + 1
	// AtLeastOnce: never lost in silence.
	AtLeastOnce
	// ExactlyOnce: both.
	ExactlyOnce
)

var assuranceNames = map[Assurance]string{
	AtMostOnce: "at-most-once", AtLeastOnce: "at-least-once", ExactlyOnce: "exactly-once",
}

func (a Assurance) String() string { return assuranceNames[a] }

// Config is what an engine works by. Both ends must agree on the fields down to Hold. A zero field
// means its default.
type Config struct {
	// Assurance is that of both directions; required. AtMostOnce does not go without order: a
	// connection is that by itself.
	Assurance Assurance
	// Ordered delivers in the order of the numbers.
	Ordered bool
	// Window is how many messages may be sent and not done, a power of two, 64 to 65536; 0 means
	// 1024.
	Window int
	// Hold is how many bytes of messages that are not done a source keeps, and a destination keeps
	// of those it cannot deliver yet; 0 means 1 MiB. It bounds one message as well.
	Hold int
	// AckDelay is how long an acknowledgement waits for company; 0 means 25 ms. Every eighth of the
	// window is acknowledged at once.
	AckDelay time.Duration
}

// withDefaults checks a configuration and fills in what is zero.
func (c Config) withDefaults() (Config, error) {
	if c.Window == 0 {
		c.Window = 1024
	}
	if c.Hold == 0 {
		c.Hold = 1 << 20
	}
	if c.AckDelay == 0 {
		c.AckDelay = 25 * time.Millisecond
	}
	bad := func(format string, args ...any) (Config, error) {
		return Config{}, &Error{Code: BadConfig, Err: fmt.Errorf(format, args...)}
	}
	switch {
	case c.Assurance < AtMostOnce || c.Assurance > ExactlyOnce:
		return bad("no assurance")
	case c.Assurance == AtMostOnce && !c.Ordered:
		return bad("at-most-once without order needs no sequence")
	case c.Window < 64 || c.Window > 1<<16 || c.Window&(c.Window-1) != 0:
		return bad("window of %d, a power of two from 64 to 65536 is possible", c.Window)
	case c.Hold < 1 || c.Hold > 1<<30:
		return bad("%d bytes held, 1 to 2^30 are possible", c.Hold)
	case c.AckDelay < 0:
		return bad("an acknowledgement delayed by %v", c.AckDelay)
	}
	return c, nil
}
