package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/hhfr/hhfr/compare/internal/ends"
)

// callsWorkload are the messages of the calls.
const callsWorkload = "w2-10floats"

// contestantArg, with a name behind it, makes this program one contestant of a measurement with
// processes.
const contestantArg = "contestant"

func runContestant(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	if len(args) != 2 {
		return fmt.Errorf("%s FOLDER NAME", contestantArg)
	}
	messages, err := findMessages(args[0], callsWorkload)
	if err != nil {
		return err
	}
	return ends.Serve(ctx, args[1], messages, in, out)
}

// measureCalls measures calls and one-way messages from end to end.
func measureCalls(ctx context.Context, o options) ([]ends.Outcome, error) {
	return ends.Measure(ctx, ends.Config{
		Args: []string{contestantArg, o.shared}, Rounds: 9, Slice: 20 * o.slice, Idle: o.idle,
	})
}

func (r *results) writeCalls(p *tablePrinter) {
	if len(r.Calls) == 0 {
		return
	}
	p.printf("\nCalls and one-way messages of %s from end to end, by the public API, both ends in one process with "+
		"one processor. µs per message are medians; memory is resident, in MB, after the last turn and after %s "+
		"without a message.\n\n", callsWorkload, r.Idle)
	t := cells{{"way", "processor, µs", "time, µs", "to the first of its kind", "memory, used", "idle"}}
	var first float64
	for i, c := range r.Calls {
		if i == 0 || c.Kind != r.Calls[i-1].Kind {
			first = c.Processor
		}
		t = append(t, []string{c.Way, micros(c.Processor), micros(c.Time), ratio(c.Processor / first),
			megabytes(c.Used), megabytes(c.Idle)})
	}
	p.table(t)
}

func megabytes(v float64) string {
	if v == 0 {
		return "-"
	}
	return strconv.FormatFloat(v/1e6, 'f', 1, 64)
}

// callsTo is the processor time of one way to that of another.
func callsTo(way, other string) func(*results) (float64, bool) {
	return func(r *results) (float64, bool) {
		var one, two float64
		for _, c := range r.Calls {
			switch c.Way {
			case way:
				one = c.Processor
			case other:
				two = c.Processor
			}
		}
		if one == 0 || two == 0 {
			return 0, false
		}
		return one / two, true
	}
}

// callGoals limit what a message costs from end to end.
func callGoals() []goal {
	return []goal{
		{15, "round trip, to gRPC's bidirectional stream", 1.15, false, callsTo(ends.HHFRClient, ends.GRPCBidi)},
		{15, "Transport and Handler, to plain HTTP", 0.9, false, callsTo(ends.HHFRDropIn, ends.PlainHTTP)},
		{15, "64 calls in flight, to gRPC's stream with a window of 64", 2, false,
			callsTo(ends.HHFRClientCrowd, ends.GRPCWindow)},
		{15, "one-way, to gRPC's client stream", 1.6, false, callsTo(ends.HHFRSend, ends.GRPCSend)},
		{15, "one-way, 16 producers to one", 1.05, false, callsTo(ends.HHFRSendCrowd, ends.HHFRSend)},
		{15, "SendAll of 64, to Send", 0.8, false, callsTo(ends.HHFRSendAll, ends.HHFRSend)},
	}
}
