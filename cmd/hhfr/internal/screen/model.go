// Package screen shows the messages of a log on a full screen, and does what keys ask.
package screen

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/chosen"
	"github.com/hhfr/hhfr/internal/inspector"
)

// screen is what the whole screen shows.
type screen int

const (
	both screen = iota // list and message
	helping
	comparing
)

// whole is a distance farther than any.
const whole = 1 << 30

// screenModel is all that is on the screen. It is changed by [screenModel.Update] alone.
type screenModel struct {
	ctx     context.Context
	source  LogSource
	log     *inspector.Log
	actions []action
	brush

	width, height int
	screen        screen
	reading       bool // focus is on the message, not on the list
	zoomed        bool // what has the focus is alone
	prompt        *prompt
	said          string
	saidStyle     style
	ended         bool // nothing more is read
	helpTop       int

	list    messageList
	detail  detail
	search  search
	marked  int // of the log; -1: none
	compare comparison
}

// LogSource is where the messages of a log come from.
type LogSource interface {
	// Name is that of the files.
	Name() string
	// Grown waits until there is more, or all was read: then ended is true, and err says what is
	// missing, if anything is.
	Grown(ctx context.Context) (ended bool, err error)
	// Choice is which messages are listed, and how.
	Choice() chosen.Choice
	// Share is how much was read, in percent; -1: that is not known.
	Share() int
}

// grew reports that more was read.
type grew struct {
	ended bool
	err   error
}

// rest is how long the screen stays as it is while more is read.
const rest = 50 * time.Millisecond

func newModel(ctx context.Context, from LogSource, log *inspector.Log, color bool) *screenModel {
	m := &screenModel{ctx: ctx, source: from, log: log, brush: brush{color}, width: 80, height: 24, marked: -1}
	m.actions = actions()
	m.list.want = -1
	m.detail.of = -1
	return m
}

// Init implements [tea.Model].
func (m *screenModel) Init() tea.Cmd { return m.wait }

// wait waits until more was read.
func (m *screenModel) wait() tea.Msg {
	ended, err := m.source.Grown(m.ctx)
	return grew{ended, err}
}

// Update implements [tea.Model].
func (m *screenModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case grew:
		cmd = m.grow(msg)
	case scanned:
		cmd = m.scanned(msg)
	case searched:
		cmd = m.found(msg)
	case sentAgain:
		m.replayed(msg)
	case tea.PasteMsg:
		if m.prompt != nil {
			m.prompt.insert(msg.Content)
		}
	case tea.KeyPressMsg:
		if m.prompt != nil {
			cmd = m.typed(msg)
		} else {
			cmd = m.press(msg.String())
		}
	}
	m.settle()
	return m, cmd
}

func (m *screenModel) grow(msg grew) tea.Cmd {
	if msg.err != nil {
		m.say(bad, msg.err.Error())
		if m.log.Len() == 0 {
			return tea.Quit // who began it says it
		}
	}
	cmds := []tea.Cmd{m.scan()}
	if m.ended = msg.ended; !m.ended {
		cmds = append(cmds, tea.Tick(rest, func(time.Time) tea.Msg { return m.wait() }))
	}
	return tea.Batch(cmds...)
}

// say shows a line until the next key.
func (m *screenModel) say(s style, text string) { m.said, m.saidStyle = safe(text), s }

// settle has cursors and the message agree with what there is.
func (m *screenModel) settle() {
	_, rows := m.listSize()
	m.list.settle(m.log.Len(), rows)
	m.load()
}

// move moves what has the focus.
func (m *screenModel) move(by int) {
	switch {
	case m.screen == helping:
		m.helpTop = max(0, min(m.helpTop+by, len(m.actions)-1))
	case m.screen == comparing:
		m.compare.move(by, m.height-3)
	case m.reading:
		_, rows := m.detailSize()
		m.detail.move(by, rows)
	default:
		m.list.move(by, m.log.Len())
	}
}

// page is how far a page is.
func (m *screenModel) page() int {
	_, rows := m.listSize()
	if m.reading {
		_, rows = m.detailSize()
	}
	if m.screen != both {
		rows = m.height - 3
	}
	return max(1, rows-1)
}

// step goes to another message, whatever has the focus.
func (m *screenModel) step(by int) {
	if m.screen == both {
		m.list.move(by, m.log.Len())
	}
}

func (m *screenModel) switchFocus() { m.reading = !m.reading }

// enter shows the message alone, or folds a row of its tree.
func (m *screenModel) enter() {
	switch {
	case m.screen != both:
		m.back()
	case m.reading && m.detail.form == asTree:
		m.detail.fold(!m.detail.folded[m.detail.rows[m.detail.at].line])
	default:
		m.reading, m.zoomed = true, !m.zoomed || !m.reading
	}
}

// back leaves what covers the rest.
func (m *screenModel) back() {
	switch {
	case m.screen != both:
		m.screen = both
	case m.zoomed:
		m.zoomed, m.reading = false, false
	case m.reading:
		m.reading = false
	default:
		m.search.text = ""
		m.detail.find("")
	}
}

func (m *screenModel) help() { m.screen, m.helpTop = helping, 0 }

func (m *screenModel) mark() {
	if n, ok := m.list.current(m.log.Len()); ok {
		m.marked = n
		m.say(good, "marked: d shows how another message differs from it")
	}
}
