package machine

import "time"

const (
	// MaxFailedStreams is how many streams in a row may end without progress before no further one
	// is tried: a peer that breaks each of them would else be asked forever.
	MaxFailedStreams = 5
	// MaxUnanswered is how many calls in a row may ask without an answer in a session that has had
	// a stream: something on the path may have changed.
	MaxUnanswered = 2
	// firstPause is the pause after the first failed attempt, MaxPause the longest one. A server
	// that restarts takes a second or more, and a link that is down is not loaded by asking.
	firstPause = 200 * time.Millisecond
	MaxPause   = 5 * time.Second
	// groupPause is the pause after all nodes of a group were tried for the first time: one that
	// takes over needs no start.
	groupPause = 50 * time.Millisecond
)

// attempts are those to get a stream, at one node after another, at growing intervals, until there
// is one, no node agrees, or there is no time left.
type attempts struct {
	until    time.Time // when nobody is tried any more
	pause    time.Duration
	tries    int
	refusals int // in a row
}

func (c *Config) attempts(now time.Time) attempts {
	a := attempts{until: now.Add(c.Reconnect), pause: firstPause}
	if c.Nodes > 1 {
		a.pause = groupPause
	}
	return a
}

// missed counts an attempt that failed at a time, and returns the next one; false: there is none.
func (a *attempts) missed(c *Config, now time.Time, passes bool) (next Task, ok bool) {
	a.tries++
	if a.refusals++; passes {
		a.refusals = 0
	}
	next = Task{Do: Try, Early: a.tries <= c.Nodes}
	if a.refusals < c.Nodes && a.tries%c.Nodes == 0 {
		next.After = a.pause/2 + c.Random(a.pause/2)
		a.pause = min(2*a.pause, MaxPause)
	}
	return next, a.refusals < c.Nodes && (next.After == 0 || !now.Add(next.After).After(a.until))
}
