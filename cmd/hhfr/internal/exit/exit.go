// Package exit has the exit codes, the errors that carry one, and the remedies that are printed.
package exit

import (
	"context"
	"errors"
	"fmt"

	"github.com/hhfr/hhfr/internal/flow"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// The exit codes (docs/cli.md).
const (
	Done        = 0
	Failed      = 1
	WrongUsage  = 2
	NoPeer      = 3
	Malformed   = 4
	Partial     = 5
	Interrupted = 130
)

// Failure is an error with its exit code and an optional hint.
type Failure struct {
	code int
	err  error
	hint string
}

func (p *Failure) Error() string { return p.err.Error() }

func (p *Failure) Unwrap() error { return p.err }

// With ends a command with a code, for an error; hint, if any, is the remedy.
func With(code int, err error, hint string) error { return &Failure{code, err, hint} }

// Usage is the failure of a wrong command line.
func Usage(err error, hint string) error { return With(WrongUsage, err, hint) }

// Withf is [With] for an error of a format as that of [fmt.Errorf].
func Withf(code int, hint, format string, args ...any) error {
	return With(code, fmt.Errorf(format, args...), hint)
}

// Usagef is [Usage] for such an error.
func Usagef(hint, format string, args ...any) error { return Withf(WrongUsage, hint, format, args...) }

// Quiet ends a command with a code whose reason was reported already.
type Quiet int

func (Quiet) Error() string { return "" }

// CodeOf returns the exit code of an error, and a hint. An interrupt takes precedence over what is
// missing because of it.
func CodeOf(err error) (code int, hint string) {
	if code, hint = Judge(err); errors.Is(err, context.Canceled) {
		code = Interrupted
	}
	return code, hint
}

// Judge is [CodeOf] for an error that no interrupt caused.
func Judge(err error) (code int, hint string) {
	var q Quiet
	var p *Failure
	var f *flow.Error
	var n *negotiate.Error
	var s *ctxstore.Error
	switch {
	case err == nil:
		return Done, ""
	case errors.As(err, &q):
		return int(q), ""
	case errors.As(err, &p):
		return p.code, p.hint
	case errors.Is(err, &ctxstore.Error{Code: ctxstore.Held}), errors.Is(err, &ctxstore.Error{Code: ctxstore.Conflict}):
		code = Failed
		if errors.Is(err, &negotiate.Error{Code: negotiate.NoHHFR}) {
			code = NoPeer
		}
		return code, "does another process send with this store to the same service? Let it end, or name another store"
	case errors.As(err, &f) && f.Code == flow.Truncated:
		return Partial, ""
	case errors.As(err, &f) && f.Code != flow.ReadFailed:
		return Malformed, "captures are pcap and pcapng files, also in gzip; raw stream bytes are for " +
			"hhfr reconstruct"
	case errors.As(err, &n):
		switch n.Code {
		case negotiate.BadConfig:
			return WrongUsage, ""
		case negotiate.NoHHFR:
			if session.MayPass(err) {
				return NoPeer, PassingHint
			}
			return NoPeer, "without --require-hhfr and --ordered, and with --assurance at-most-once, the " +
				"messages go as plain SOAP"
		case negotiate.OtherRun:
			return WrongUsage, "nothing was sent of these messages. To go on with an interrupted run name the " +
				"FILEs it had, " +
				"in its order; without --resume all of them are sent, after what the store still has of it"
		case negotiate.OldStore:
			return WrongUsage, "nothing was sent of these messages. The same command without FILEs and " +
				"--resume finishes " +
				"what the store has, and prints the replies; then send what the service lacks"
		case negotiate.Unreachable:
			return NoPeer, UnreachableHint(err)
		case negotiate.FateUnknown:
			return Partial, "the request was not sent again, since it may have been processed"
		}
	case errors.As(err, &s):
		if s.Code == ctxstore.Invalid && s.At == "" && s.URI == "" {
			return WrongUsage, s.Hint // it cannot be a store
		}
		return Failed, s.Hint
	}
	return Failed, ""
}

// PassingHint is the remedy for what may pass by itself: a guarantee is not given up for it.
const PassingHint = "that may pass: try the same command again; --reconnect TIME waits longer for it"
