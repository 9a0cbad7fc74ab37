package screen

import (
	"sort"

	tea "charm.land/bubbletea/v2"

	"github.com/hhfr/hhfr/internal/filter"
)

// messageList is the messages that a filter chooses, and the place among them.
type messageList struct {
	expression *filter.Expression // nil: all
	texts      filterTexts
	chosen     []int32 // of the log, if there is an expression
	asked      int     // how many messages it was asked for
	generation int     // of the expression
	busy       bool    // it is being asked

	at, top int
	// want is the message of the log that the cursor returns to when it was asked for; -1: none.
	want int
	// last: the cursor stays at the last message.
	last bool
}

// filterTexts are what a filter is made of.
type filterTexts struct{ typed, conversation string }

// length is how many messages are listed, of so many that were read.
func (l *messageList) length(read int) int {
	if l.expression == nil {
		return read
	}
	return len(l.chosen)
}

// nth is the message of the log at a place of the list.
func (l *messageList) nth(at int) int {
	if l.expression == nil {
		return at
	}
	return int(l.chosen[at])
}

// current is the message of the log at the cursor, if there is any.
func (l *messageList) current(read int) (int, bool) {
	if l.at >= l.length(read) {
		return 0, false
	}
	return l.nth(l.at), true
}

func (l *messageList) move(by, read int) {
	n := l.length(read)
	l.at, l.want = max(0, min(l.at+by, n-1)), -1
	l.last = by == whole || l.last && l.at == n-1
}

// settle has the place be one that there is, and its row seen.
func (l *messageList) settle(read, rows int) {
	n := l.length(read)
	if l.last {
		l.at = n - 1
	}
	l.at = max(0, min(l.at, n-1))
	if l.at < l.top {
		l.top = l.at
	}
	l.top = max(0, min(max(l.top, l.at-rows+1), n-rows))
}

// jump moves the cursor to a message of the log, or to the next one that is listed.
func (l *messageList) jump(n int) {
	l.at, l.last = n, false
	if l.expression != nil {
		l.at = sort.Search(len(l.chosen), func(i int) bool { return int(l.chosen[i]) >= n })
	}
}

// batch is how many messages are asked at once.
const batch = 2048

// scanned is what a filter chose of some messages.
type scanned struct {
	generation, to int
	chosen         []int32
	err            error
}

// choose has another filter choose messages.
func (m *screenModel) choose(e *filter.Expression) tea.Cmd {
	if n, ok := m.list.current(m.log.Len()); ok && m.list.want < 0 {
		m.list.want = n
	}
	l := &m.list
	want := l.want
	l.expression, l.chosen, l.asked, l.at, l.top = e, nil, 0, 0, 0
	l.generation++
	l.busy = false
	if e == nil && want >= 0 {
		l.jump(want)
		l.want = -1
	}
	return m.scan()
}

// scan asks the filter for the next messages, unless that is being done.
func (m *screenModel) scan() tea.Cmd {
	l := &m.list
	from, to := l.asked, min(l.asked+batch, m.log.Len())
	if l.expression == nil || l.busy || from >= to {
		return nil
	}
	l.busy = true
	e, generation := l.expression, l.generation
	return func() tea.Msg {
		done := scanned{generation: generation, to: to}
		for n := from; n < to && m.ctx.Err() == nil; n++ {
			one, err := m.log.At(n)
			if err != nil {
				done.err = err
				break
			}
			if as := listed(one).Candidate(); e.Holds(&as) {
				done.chosen = append(done.chosen, int32(n))
			}
		}
		return done
	}
}

func (m *screenModel) scanned(msg scanned) tea.Cmd {
	l := &m.list
	if msg.generation != l.generation {
		return nil
	}
	if msg.err != nil {
		m.say(bad, msg.err.Error())
		return nil
	}
	l.busy = false
	l.chosen, l.asked = append(l.chosen, msg.chosen...), msg.to
	if l.want >= 0 && l.asked > l.want {
		l.jump(l.want)
		l.want = -1
	}
	return m.scan()
}
