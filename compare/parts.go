package main

import (
	"context"
	"path/filepath"
	"slices"
)

// measurement is one of the measurements of a run.
type measurement struct {
	name    string
	measure func(ctx context.Context, in *inputs, o options, r *results) error
}

// parts are all, in the order in which they are made and reported.
var parts = []measurement{
	{"bytes", func(ctx context.Context, in *inputs, _ options, r *results) (err error) {
		r.Bytes, err = measureBytes(ctx, in)
		return err
	}},
	{"stages", func(ctx context.Context, in *inputs, _ options, r *results) (err error) {
		r.Stages, err = measureStageSets(ctx, in)
		return err
	}},
	{"shapes", func(ctx context.Context, in *inputs, _ options, r *results) (err error) {
		if in.corpus != "" {
			r.Shapes, err = measureShapes(ctx, in)
		}
		return err
	}},
	{"describe", func(ctx context.Context, in *inputs, _ options, r *results) (err error) {
		if in.corpus != "" {
			r.Described, err = measureDescribed(ctx, filepath.Dir(in.corpus))
		}
		return err
	}},
	{"speed", func(ctx context.Context, in *inputs, o options, r *results) (err error) {
		r.Speed, err = measureSpeed(ctx, in, o.rounds, o.slice)
		return err
	}},
	{"strangers", func(ctx context.Context, _ *inputs, _ options, r *results) (err error) {
		r.Strangers, err = measureStrangers(ctx, 7, 10_000)
		return err
	}},
	{"flow", func(ctx context.Context, _ *inputs, _ options, r *results) (err error) {
		r.Flow, err = measureFlow(ctx)
		return err
	}},
	{"echo", func(ctx context.Context, _ *inputs, _ options, r *results) (err error) {
		r.Echo, err = measureEcho(ctx, 32<<20, 5)
		return err
	}},
	{"entry", func(ctx context.Context, _ *inputs, _ options, r *results) (err error) {
		r.Entry, err = measureEntry(ctx, slices.Concat(thin, fast), entryCounts)
		return err
	}},
	{"unlike", func(ctx context.Context, in *inputs, _ options, r *results) (err error) {
		if in.corpus != "" {
			r.Unlike, err = measureUnlike(ctx, in)
		}
		return err
	}},
	{"conversations", func(ctx context.Context, _ *inputs, _ options, r *results) (err error) {
		r.Conversations, err = measureConversations(ctx)
		return err
	}},
	{"real", func(ctx context.Context, _ *inputs, o options, r *results) (err error) {
		r.Real, err = measureReal(ctx, o)
		return err
	}},
	{"load", func(ctx context.Context, _ *inputs, _ options, r *results) (err error) {
		r.Load, err = measureLoad(ctx)
		return err
	}},
	{"calls", func(ctx context.Context, _ *inputs, o options, r *results) (err error) {
		r.Calls, err = measureCalls(ctx, o)
		return err
	}},
	{"pairs", func(ctx context.Context, in *inputs, o options, r *results) (err error) {
		r.Pairs, err = measurePairs(ctx, in, o)
		return err
	}},
	{"idle", func(ctx context.Context, _ *inputs, o options, r *results) (err error) {
		r.Sessions, err = measureIdle(ctx, o)
		return err
	}},
	{"captures", func(ctx context.Context, _ *inputs, _ options, r *results) (err error) {
		r.Captures, err = measureCaptures(ctx, 1e9, 60e6)
		return err
	}},
	{"resident", func(ctx context.Context, _ *inputs, o options, r *results) (err error) {
		r.Resident, err = measureResident(ctx, o)
		return err
	}},
}

func partNames() (names []string) {
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names
}
