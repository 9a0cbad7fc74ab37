package command

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
)

// Global are what a command works with, and the flags of every command. They determine how a
// command reports on stderr: lines for people, or with --log-format json one object per line.
type Global struct {
	Verbose, Quiet bool
	LogFormat      string
	DNS            DNSServer
	Env
	Stderr io.Writer // Env.Err, for several loggers
}

// JSON prints a line on stdout.
func (g *Global) JSON(v any) error { return printing.JSON(g.Out, v) }

// Note reports a result of a command; -q silences it.
func (g *Global) Note(format string, args ...any) {
	if !g.Quiet {
		g.Tell(slog.LevelInfo, "", fmt.Sprintf(format, args...))
	}
}

// Say reports what -q does not silence: a result that may differ from what was asked.
func (g *Global) Say(format string, args ...any) {
	g.Tell(slog.LevelInfo, "", fmt.Sprintf(format, args...))
}

// Warn reports what is not as it should be, but no failure; -q silences it.
func (g *Global) Warn(format string, args ...any) {
	if !g.Quiet {
		g.Tell(slog.LevelWarn, "warning: ", fmt.Sprintf(format, args...))
	}
}

// Detail reports what only -v shows.
func (g *Global) Detail(format string, args ...any) {
	if g.Verbose {
		g.Tell(slog.LevelInfo, "", fmt.Sprintf(format, args...))
	}
}

// Fail reports why a command ends with this exit code, one error per line, and the remedy.
func (g *Global) Fail(code int, lines []string, hint string) {
	for i, line := range lines {
		attrs := []slog.Attr{slog.Int("exit_code", code)}
		if hint != "" && i == len(lines)-1 {
			attrs = append(attrs, slog.String("hint", hint))
		}
		g.Tell(slog.LevelError, "error: ", line, attrs...)
	}
	if hint != "" && g.LogFormat != "json" {
		g.Tell(slog.LevelInfo, "hint: ", hint)
	}
}

// Tell writes one line. kind is what people read before the text; attrs are only in JSON.
func (g *Global) Tell(level slog.Level, kind, text string, attrs ...slog.Attr) {
	if g.LogFormat != "json" {
		fmt.Fprintf(g.Stderr, "hhfr: %s%s\n", kind, printing.Printable(text))
		return
	}
	slog.New(g.handler(slog.LevelDebug)).LogAttrs(context.Background(), level, text, attrs...)
}

// Logger is for the packages below.
func (g *Global) Logger() *slog.Logger {
	level := slog.LevelWarn
	switch {
	case g.Verbose:
		level = slog.LevelDebug
	case g.Quiet:
		level = slog.LevelError
	}
	return slog.New(g.handler(level))
}

func (g *Global) handler(level slog.Level) slog.Handler {
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: g.plainValue}
	if g.LogFormat == "json" {
		return slog.NewJSONHandler(printing.Escaping{Writer: g.Stderr}, o)
	}
	return slog.NewTextHandler(g.Stderr, o)
}

// plainValue turns values that are neither number, truth value nor time into text, so that a key
// has values of one type, whoever logs: addresses and durations become text.
func (g *Global) plainValue(_ []string, a slog.Attr) slog.Attr {
	switch v := a.Value; v.Kind() {
	case slog.KindDuration:
		a.Value = slog.StringValue(v.Duration().String())
	case slog.KindAny:
		switch v := v.Any().(type) {
		case nil:
		case error:
			a.Value = slog.StringValue(g.Message(v))
		default:
			a.Value = slog.StringValue(fmt.Sprint(v))
		}
	default:
	}
	return a
}

// Together makes one writer safe for several printers.
type Together struct {
	mu sync.Mutex
	W  io.Writer
}

// Write writes one line, or several that belong together.
func (t *Together) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.W.Write(b)
}
