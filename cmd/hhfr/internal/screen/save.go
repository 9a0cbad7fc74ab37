package screen

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
)

func (m *screenModel) askSave() {
	if m.detail.of < 0 {
		return
	}
	n, name := m.detail.of, m.detail.entry.FileName()
	m.ask("save to: ", name, func(name string) (tea.Cmd, error) {
		if name == "" {
			return nil, errors.New("a name is missing")
		}
		err := m.save(n, name, os.O_EXCL)
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		m.ask(safe(name)+" is there already; overwrite it (yes or no)? ", "no", func(answer string) (tea.Cmd, error) {
			if !strings.HasPrefix(strings.ToLower(answer), "y") {
				m.say(plain, "not saved")
				return nil, nil
			}
			return nil, m.save(n, name, os.O_TRUNC)
		})
		return nil, nil
	})
}

// save writes the body of a message to a file.
func (m *screenModel) save(n int, name string, flag int) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|flag, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(m.log.WriteBody(n, f), f.Close()); err != nil {
		return err
	}
	m.say(good, "saved to "+name+": "+printing.BytesText(m.detail.entry.BodyOctets))
	return nil
}

// mostCopied is the longest text that is copied, in bytes: many terminals take no more.
const mostCopied = 64 << 10

// copy copies the body to the clipboard of the terminal.
func (m *screenModel) copy() tea.Cmd {
	e := m.detail.entry
	switch {
	case m.detail.of < 0:
		return nil
	case e.BodyOctets > mostCopied:
		m.say(bad, printing.BytesText(e.BodyOctets)+" are too many for the clipboard of a terminal: s saves them")
		return nil
	}
	text := printing.Lines(strings.ReplaceAll(strings.ReplaceAll(string(e.Body), "\t", " "), "\r\n", "\n"))
	m.say(good, "copied "+printing.BytesText(e.BodyOctets))
	if hidden := bytes.Count([]byte(text), []byte("?")) - bytes.Count(e.Body, []byte("?")); hidden > 0 {
		m.say(bad, "copied with "+printing.Count(hidden, "question mark")+
			" for what a terminal would obey: s saves the bytes")
	}
	return tea.SetClipboard(text)
}
