package screen

import (
	"regexp"

	tea "charm.land/bubbletea/v2"

	"github.com/hhfr/hhfr/internal/filter"
)

func (m *screenModel) askFilter() {
	m.ask("filter: ", m.list.texts.typed, func(text string) (tea.Cmd, error) {
		return m.narrow(filterTexts{text, m.list.texts.conversation})
	})
}

// narrow lists the messages of a filter alone.
func (m *screenModel) narrow(texts filterTexts) (tea.Cmd, error) {
	var all *filter.Expression
	for _, text := range []string{texts.typed, texts.conversation} {
		if text == "" {
			continue
		}
		e, err := filter.Parse(text)
		if err != nil {
			return nil, err
		}
		all = all.And(e)
	}
	m.list.texts = texts
	return m.choose(all), nil
}

// String is the filter as one expression.
func (f filterTexts) String() string {
	switch {
	case f.typed == "":
		return f.conversation
	case f.conversation == "":
		return f.typed
	}
	return "(" + f.typed + ") && " + f.conversation
}

// follow lists the conversation of this message alone: those of its session, or of its client; or
// again all.
func (m *screenModel) follow() tea.Cmd {
	texts := m.list.texts
	e := m.detail.entry
	switch {
	case texts.conversation != "":
		texts.conversation = ""
	case m.detail.of < 0:
		return nil
	case e.HHFR:
		texts.conversation = `session ~ "^` + regexp.QuoteMeta(e.SessionString()) + `"`
	case e.Client().IsValid():
		texts.conversation = "client == " + e.Client().String()
	default:
		return nil
	}
	cmd, err := m.narrow(texts)
	if err != nil {
		m.say(bad, err.Error())
	}
	return cmd
}
