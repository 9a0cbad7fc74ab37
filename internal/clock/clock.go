// Package clock is package pkg/clock under the path it had before.
package clock

import (
	"time"

	"github.com/hhfr/hhfr/pkg/clock"
)

// Clock is [clock.Clock].
type Clock = clock.Clock

// Timer is [clock.Timer].
type Timer = clock.Timer

// Real is [clock.Real].
func Real() Clock { return clock.Real() }

// Scaled is [clock.Scaled].
func Scaled(k float64) Clock { return clock.Scaled(k) }

// Processor is [clock.Processor].
func Processor() time.Duration { return clock.Processor() }
