package screen

import (
	"fmt"
	"regexp"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// search is a text that is looked for.
type search struct {
	text       string
	generation int // of what is running
	// first: the next message shows its first place; otherwise its last one.
	first bool
}

// mostPlaces bounds the places of a text in one message.
const mostPlaces = 10_000

// needleOf finds a text; one without capitals in whatever case.
func needleOf(text string) *regexp.Regexp {
	flags := ""
	if strings.ToLower(text) == text {
		flags = "(?i)"
	}
	return regexp.MustCompile(flags + regexp.QuoteMeta(text))
}

func (m *screenModel) askSearch() {
	m.ask("/", m.search.text, func(text string) (tea.Cmd, error) {
		m.search.text = text
		m.detail.find(text)
		return m.searchFrom(1), nil
	})
}

// searchOn goes on to the next place, or difference.
func (m *screenModel) searchOn(by int) tea.Cmd {
	if m.screen == comparing {
		m.compare.next(by, m.height-3)
		return nil
	}
	if m.search.text == "" {
		m.say(plain, "/ searches")
		return nil
	}
	return m.searchFrom(by)
}

// searchFrom goes to the next place in this message, or else to the next message that has one.
func (m *screenModel) searchFrom(by int) tea.Cmd {
	if m.search.text == "" {
		return nil
	}
	if next := m.detail.place + by; next >= 0 && next < len(m.detail.found) {
		m.showPlace(next)
		return nil
	}
	m.search.generation++
	m.search.first = by > 0
	m.say(plain, "searching for "+m.search.text+" …")
	return m.searchAll(m.list.at+by, by, 0)
}

// showPlace goes to a place in the message.
func (m *screenModel) showPlace(i int) {
	d := &m.detail
	d.place = i
	row := d.rowOf(d.found[i])
	d.at = row
	if _, rows := m.detailSize(); row < d.top || row >= d.top+rows {
		d.top = row - rows/3
	}
	m.say(plain, fmt.Sprintf("%d of %d in this message; n goes on, also to other messages", i+1, len(d.found)))
}

// searched is where the search in all messages is.
type searched struct {
	generation, at, by, asked int
	found                     bool
	err                       error
}

// searchAll looks into messages of the list, from a place on; asked is how many were looked into.
func (m *screenModel) searchAll(at, by, asked int) tea.Cmd {
	const step = 256
	read := m.log.Len()
	n := m.list.length(read)
	msg := searched{generation: m.search.generation, by: by, asked: asked}
	var look []int
	for ; len(look) < step && msg.asked < n; msg.asked++ {
		at = (at%n + n) % n // on from where it began
		look = append(look, m.list.nth(at))
		at += by
	}
	msg.at = at
	text := needleOf(m.search.text)
	return func() tea.Msg {
		for i, k := range look {
			e, err := m.log.At(k)
			if err != nil {
				msg.err = err
				break
			}
			if text.Match(e.Body) || text.Match(e.Head) {
				msg.found, msg.at = true, look[i]
				break
			}
		}
		return msg
	}
}

func (m *screenModel) found(msg searched) tea.Cmd {
	n := m.list.length(m.log.Len())
	switch {
	case msg.generation != m.search.generation:
		return nil
	case msg.err != nil:
		m.say(bad, msg.err.Error())
		return nil
	case !msg.found && msg.asked < n:
		return m.searchAll(msg.at, msg.by, msg.asked)
	case !msg.found:
		m.say(bad, "no message has "+m.search.text)
		return nil
	}
	m.list.jump(msg.at)
	m.detail.of = -1
	m.settle()
	switch d := &m.detail; {
	case len(d.found) == 0 && !d.head && needleOf(m.search.text).Match(d.entry.Head):
		m.say(plain, "found in the HTTP head: H shows it")
	case len(d.found) == 0:
		m.say(plain, "found in this message, across lines")
	case m.search.first:
		m.showPlace(0)
	default:
		m.showPlace(len(d.found) - 1)
	}
	return nil
}
