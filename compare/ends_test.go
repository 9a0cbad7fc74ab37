package main

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/compare/internal/ends"
	"github.com/hhfr/hhfr/pkg/workload"
)

// The processes that are measured are this program; in tests that of the tests.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && processes[os.Args[1]] != nil {
		os.Exit(runProcess(context.Background(), processes[os.Args[1]]))
	}
	os.Exit(m.Run())
}

// quickly are options with which processes are measured in a moment.
var quickly = options{slice: 100 * time.Microsecond, idle: time.Millisecond, sessions: 20}

func TestCalls(t *testing.T) {
	rows, err := measureCalls(t.Context(), quickly)
	require.NoError(t, err)
	text := textOf(t, func(r *results) { r.Calls, r.Idle = rows, quickly.idle })
	for _, row := range rows {
		assert.Positive(t, row.Processor, row.Way)
		assert.Positive(t, row.Time, row.Way)
		assert.Contains(t, text, "| "+row.Way+" ")
	}
	judged(t, callGoals(), func(r *results) { r.Calls = rows })
}

func TestPairs(t *testing.T) {
	calls, long, err := ends.MeasurePair(t.Context(), ends.PairConfig{
		Config:   ends.Config{Args: []string{proxyArg}, Rounds: 1, Slice: 10 * time.Millisecond},
		Messages: take(workload.Floats(seed, 10), 10),
		Long:     []ends.Long{{Name: "records", Body: longRecords(1 << 20)}, {Name: "base64", Body: longBlob(1 << 20)}},
	})
	require.NoError(t, err)
	p := &pairs{Calls: calls, Long: long}
	text := textOf(t, func(r *results) { r.Pairs = p })
	for _, row := range calls {
		assert.Positive(t, row.P50, row.Way)
		assert.Equal(t, row.Way == ends.Direct, row.Processor == 0, row.Way)
		assert.Contains(t, text, "| "+row.Way+" ")
	}
	for _, row := range long {
		assert.InDelta(t, 1<<20, row.Octets, 64<<10)
		assert.Positive(t, row.Time, row.Way)
	}
	judged(t, pairGoals(), func(r *results) { r.Pairs = p })
}

func TestIdle(t *testing.T) {
	rows, err := measureIdle(t.Context(), quickly)
	require.NoError(t, err)
	text := textOf(t, func(r *results) { r.Sessions = rows })
	for _, row := range rows {
		assert.Positive(t, row.Goroutines, row.Host)
		assert.Positive(t, row.Open, row.Host)
		assert.Contains(t, text, "| "+row.Host+" ")
	}
	judged(t, idleGoals(), func(r *results) { r.Sessions = rows })
}

func TestResident(t *testing.T) {
	rows, err := measureResident(t.Context(), quickly)
	require.NoError(t, err)
	require.Len(t, rows, 9, "three commands with three numbers of sessions")
	text := textOf(t, func(r *results) { r.Resident = rows })
	for _, row := range rows {
		assert.Greater(t, row.Idle, 1e6, row.Command)
		assert.GreaterOrEqual(t, row.Busy, row.Idle/2, row.Command)
		assert.Contains(t, text, "| "+row.Command+" ")
	}
	judged(t, residentGoals(), func(r *results) { r.Resident = rows })
}

// judged checks that goals are judged by what was measured, and not without.
func judged(t *testing.T, goals []goal, measured func(*results)) {
	t.Helper()
	with, without := newReport(few()), newReport(few())
	measured(with)
	for _, g := range goals {
		_, ok := g.judge(with)
		assert.True(t, ok, g.what)
		_, ok = g.judge(without)
		assert.False(t, ok, g.what)
	}
}
