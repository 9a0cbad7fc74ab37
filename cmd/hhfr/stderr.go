package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/hhfr/hhfr/internal/resolve"
)

// global are the flags of every command. They determine how a command reports on stderr: lines for
// people, or with --log-format json one object per line.
type global struct {
	verbose, quiet bool
	logFormat      string
	dns            dnsServer
	system         resolve.System
	err            io.Writer
}

// note reports a result of a command; -q silences it.
func (g *global) note(format string, args ...any) {
	if !g.quiet {
		g.tell(slog.LevelInfo, "", fmt.Sprintf(format, args...))
	}
}

// say reports what -q does not silence: a result that may differ from what was asked.
func (g *global) say(format string, args ...any) {
	g.tell(slog.LevelInfo, "", fmt.Sprintf(format, args...))
}

// warn reports what is not as it should be, but no failure; -q silences it.
func (g *global) warn(format string, args ...any) {
	if !g.quiet {
		g.tell(slog.LevelWarn, "warning: ", fmt.Sprintf(format, args...))
	}
}

// detail reports what only -v shows.
func (g *global) detail(format string, args ...any) {
	if g.verbose {
		g.tell(slog.LevelInfo, "", fmt.Sprintf(format, args...))
	}
}

// fail reports why a command ends with this exit code, one error per line, and the remedy.
func (g *global) fail(code int, lines []string, hint string) {
	for i, line := range lines {
		attrs := []slog.Attr{slog.Int("exit_code", code)}
		if hint != "" && i == len(lines)-1 {
			attrs = append(attrs, slog.String("hint", hint))
		}
		g.tell(slog.LevelError, "error: ", line, attrs...)
	}
	if hint != "" && g.logFormat != "json" {
		g.tell(slog.LevelInfo, "hint: ", hint)
	}
}

// tell writes one line. kind is what people read before the text; attrs are only in JSON.
func (g *global) tell(level slog.Level, kind, text string, attrs ...slog.Attr) {
	if g.logFormat != "json" {
		fmt.Fprintf(g.err, "hhfr: %s%s\n", kind, printable(text))
		return
	}
	slog.New(g.handler(slog.LevelDebug)).LogAttrs(context.Background(), level, text, attrs...)
}

// logger is for the packages below.
func (g *global) logger() *slog.Logger {
	level := slog.LevelWarn
	switch {
	case g.verbose:
		level = slog.LevelDebug
	case g.quiet:
		level = slog.LevelError
	}
	return slog.New(g.handler(level))
}

func (g *global) handler(level slog.Level) slog.Handler {
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: g.plainValue}
	if g.logFormat == "json" {
		return slog.NewJSONHandler(escaping{g.err}, o)
	}
	return slog.NewTextHandler(g.err, o)
}

// plainValue turns values that are neither number, truth value nor time into text, so that a key
// has values of one type, whoever logs: addresses and durations become text.
func (g *global) plainValue(_ []string, a slog.Attr) slog.Attr {
	switch v := a.Value; v.Kind() {
	case slog.KindDuration:
		a.Value = slog.StringValue(v.Duration().String())
	case slog.KindAny:
		switch v := v.Any().(type) {
		case nil:
		case error:
			a.Value = slog.StringValue(g.message(v))
		default:
			a.Value = slog.StringValue(fmt.Sprint(v))
		}
	default:
	}
	return a
}
