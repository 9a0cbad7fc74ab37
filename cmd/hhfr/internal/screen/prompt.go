package screen

import (
	"errors"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/hhfr/hhfr/internal/filter"
)

// prompt is a line that the user types.
type prompt struct {
	label   string
	text    []rune
	at      int // of the cursor
	problem string
	caret   int // column of the problem, from 1; 0: none
	// enter takes the line. With an error the line stays.
	enter func(text string) (tea.Cmd, error)
}

func (m *screenModel) ask(label, text string, enter func(string) (tea.Cmd, error)) {
	m.prompt = &prompt{label: label, text: []rune(text), at: len([]rune(text)), enter: enter}
}

// typed takes a key of the line.
func (m *screenModel) typed(key tea.KeyPressMsg) tea.Cmd {
	p := m.prompt
	switch key.String() {
	case "enter":
		cmd, err := p.enter(string(p.text))
		if err != nil {
			p.refuse(err)
			return nil
		}
		if m.prompt == p {
			m.prompt = nil
		}
		return cmd
	case "esc", "ctrl+c":
		m.prompt = nil
		m.say(plain, "")
	case "left":
		p.at = max(0, p.at-1)
	case "right":
		p.at = min(len(p.text), p.at+1)
	case "home", "ctrl+a":
		p.at = 0
	case "end", "ctrl+e":
		p.at = len(p.text)
	case "ctrl+u":
		p.text, p.at = p.text[p.at:], 0
	case "ctrl+k":
		p.text = p.text[:p.at]
	case "backspace":
		if p.at > 0 {
			p.at--
			p.text = slices.Delete(p.text, p.at, p.at+1)
		}
	case "delete":
		if p.at < len(p.text) {
			p.text = slices.Delete(p.text, p.at, p.at+1)
		}
	default:
		p.insert(key.Text)
	}
	return nil
}

// insert adds a text at the cursor, without what is no character.
func (p *prompt) insert(text string) {
	text = strings.ReplaceAll(text, "\n", " ")
	add := []rune(strings.Map(func(r rune) rune {
		if safe(string(r)) == "?" && r != '?' {
			return -1
		}
		return r
	}, text))
	p.text = slices.Insert(p.text, p.at, add...)
	p.at += len(add)
	p.problem, p.caret = "", 0
}

// refuse shows what is wrong with the line.
func (p *prompt) refuse(err error) {
	p.problem, p.caret = safe(err.Error()), 0
	var syntax *filter.SyntaxError
	if errors.As(err, &syntax) {
		p.problem, p.caret = safe(syntax.What), syntax.Column
	}
}

// line is the line in a width, and the column of its cursor, and that of the caret, from 0.
func (p *prompt) line(width int) (text string, at, caret int) {
	label := columns(p.label)
	first := 0
	for columns(string(p.text[first:p.at])) > max(1, width-label-2) {
		first++
	}
	text = p.label + string(p.text[first:])
	at = label + columns(string(p.text[first:p.at]))
	caret = -1
	if k := p.caret - 1; k >= first && k <= len(p.text) {
		caret = label + columns(string(p.text[first:k]))
	}
	return fit(text, width), at, caret
}
