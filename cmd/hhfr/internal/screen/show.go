package screen

import (
	"context"
	"io"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/hhfr/hhfr/internal/inspector"
)

// Config is where and how a screen is shown.
type Config struct {
	// In are the keys; nil: the terminal of the process.
	In     io.Reader
	Out    io.Writer
	Colors bool
}

// ErrInterrupted reports that the user pressed Ctrl-C.
var ErrInterrupted = tea.ErrInterrupted

// Show shows a log until the user ends it, or ctx ends. The terminal is then as it was before.
func Show(ctx context.Context, from LogSource, log *inspector.Log, cfg Config) error {
	m := newModel(ctx, from, log, cfg.Colors)
	choice := from.Choice()
	m.detail.head = choice.Head
	switch {
	case choice.Hex:
		m.detail.form = asHex
	case choice.Bits:
		m.detail.form = asCarried
	case choice.Tree:
		m.detail.form = asTree
	}
	profile := colorprofile.ASCII // found out here: otherwise a program of tmux is asked
	if cfg.Colors {
		profile = colorprofile.ANSI
	}
	with := []tea.ProgramOption{
		tea.WithContext(ctx), tea.WithOutput(cfg.Out), tea.WithoutSignalHandler(), tea.WithColorProfile(profile),
	}
	if cfg.In != nil {
		with = append(with, tea.WithInput(cfg.In))
	}
	_, err := tea.NewProgram(m, with...).Run()
	return err
}
