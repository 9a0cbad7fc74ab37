//go:build soak

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
)

// TestSoakResume: 300 runs are killed, from their first millisecond on, over tcp and over udp, and
// resumed: nothing is missing, nothing is there twice. A failure names its seed; the state of a run
// when it dies depends on the machine.
func TestSoakResume(t *testing.T) {
	for _, flags := range [][]string{
		{"--transport", "tcp"}, {"--transport", "tcp", "--ordered"},
		{"--transport", "udp"},
	} {
		seed := uint64(time.Now().UnixNano())
		began := time.Now()
		f := resumeKills{flags: flags, kills: 300, seed: seed}.run(t)
		t.Logf("%v: %+v, %v, seed %d", flags, f, time.Since(began).Round(time.Second), seed)
		assert.Equal(t, 300, f.kills)
		assert.GreaterOrEqual(t, f.early, 30)
		assert.GreaterOrEqual(t, f.resumesKilled, 30)
		assert.Positive(t, f.fresh)
		assert.GreaterOrEqual(t, f.goneOn, 30)
		assert.Positive(t, f.nothing)
		if t.Failed() {
			return
		}
	}
}

// Datagrams are sent before anybody answers: where nobody does, that is no connection, and the
// store keeps what it has.
func TestSoakNobodyAtARememberedDatagramAddress(t *testing.T) {
	w := newResumeWorld(t, "--transport", "udp", "--negotiate-timeout", "1s")
	w.dies([]string{"a"})
	w.server.kill()
	code, _, stderr := w.run(w.file("b"))
	assert.Equal(t, exit.NoPeer, code, stderr)
	assert.Contains(t, stderr, "no connection: nobody answers: message 1 ")
	assert.Contains(t, stderr, "hint: is the server running, and are host and port right? The same command with "+
		"--resume")
}
