package proxy

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestProgress(t *testing.T) {
	s := &callProgress{before: 3}
	assert.True(t, s.follows(3))
	s.follow()
	assert.False(t, s.follows(3))
	assert.True(t, s.follows(4))

	assert.True(t, s.mayLeave(), "nothing was begun")
	assert.True(t, s.begin())
	assert.True(t, s.begin())
	assert.False(t, s.mayLeave())
	s.reply()
	assert.False(t, s.mayLeave(), "the reply to the first of two calls")
	assert.False(t, s.finish())
	s.reply()
	assert.True(t, s.mayLeave(), "the reply to the last call")
	assert.Equal(t, uint64(1), s.open())
	assert.Equal(t, uint64(2), s.calls())
	assert.False(t, s.finish())
	assert.Zero(t, s.open())
}

// The upstream has closed: the connection ends when no call is in progress, and none was in
// transit.
func TestProgressToTheEnd(t *testing.T) {
	for name, one := range map[string]struct {
		begun, finished int
		end             upstreamEnd
		may, ends       bool
	}{
		"between calls":          {2, 2, upstreamEnd{calls: 2}, true, false},
		"a call in progress":     {2, 1, upstreamEnd{calls: 2}, false, true},
		"a call was in transit":  {2, 2, upstreamEnd{calls: 1}, false, true},
		"idle":                   {2, 2, upstreamEnd{idle: true}, true, false},
		"idle, a call has begun": {2, 1, upstreamEnd{idle: true}, false, false},
		"before the first call":  {0, 0, upstreamEnd{}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &callProgress{}
			for range one.begun {
				s.begin()
			}
			for range one.finished {
				s.finish()
			}
			assert.Equal(t, one.may, s.mayEnd(&one.end))
			assert.Equal(t, !one.may, s.begin(), "a call begins unless the connection ends")
			assert.Equal(t, one.ends, s.finish())
		})
	}
}

func TestProgressCloses(t *testing.T) {
	s := &callProgress{}
	s.begin()
	s.begin()
	assert.False(t, s.closeBehind(), "there is another call")
	s.finish()
	assert.True(t, s.closeBehind())
	assert.False(t, s.begin())
	s.finish()
	assert.True(t, s.close())

	s = &callProgress{}
	s.begin()
	assert.False(t, s.close())
	assert.False(t, s.begin())
	assert.True(t, s.mayLeave(), "it is about to be closed")
}
