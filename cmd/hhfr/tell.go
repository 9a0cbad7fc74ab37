package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/hhfr/hhfr/internal/resolve"
)

// global are the flags of every command. By them a command tells on stderr what is no data: lines
// for people, or with --log-format json an object a line.
type global struct {
	verbose, quiet bool
	logFormat      string
	dns            dnsServer
	system         resolve.System
	err            io.Writer
}

// note tells what came of a command; -q silences it.
func (g *global) note(format string, args ...any) {
	if !g.quiet {
		g.tell(slog.LevelInfo, "", fmt.Sprintf(format, args...))
	}
}

// say tells what -q does not silence: what the command came to, where that may not be what was
// asked.
func (g *global) say(format string, args ...any) {
	g.tell(slog.LevelInfo, "", fmt.Sprintf(format, args...))
}

// warn tells what is not as it should be, and no failure; -q silences it.
func (g *global) warn(format string, args ...any) {
	if !g.quiet {
		g.tell(slog.LevelWarn, "warning: ", fmt.Sprintf(format, args...))
	}
}

// detail tells what only -v asks for.
func (g *global) detail(format string, args ...any) {
	if g.verbose {
		g.tell(slog.LevelInfo, "", fmt.Sprintf(format, args...))
	}
}

// fail tells why a command ends with this exit code, an error a line, and what to do about it.
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

// tell writes one line. kind is what people read before the text, attrs what only JSON has.
func (g *global) tell(level slog.Level, kind, text string, attrs ...slog.Attr) {
	if g.logFormat != "json" {
		fmt.Fprintf(g.err, "hhfr: %s%s\n", kind, text)
		return
	}
	slog.New(g.handler(slog.LevelDebug)).LogAttrs(context.Background(), level, text, attrs...)
}

// logger is for what happens in the packages below.
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
		return slog.NewJSONHandler(g.err, o)
	}
	return slog.NewTextHandler(g.err, o)
}

// plainValue makes what is neither number nor truth nor time a text, so that a key has values of
// one type, whoever logs: an address is its text, and so is a duration.
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
