package screen

import (
	"slices"

	tea "charm.land/bubbletea/v2"
)

// action is what keys do, and the flags of decode that do the same; - if it only moves.
type action struct {
	keys []string
	does string
	flag string
	run  func(*model) tea.Cmd
}

// moves is an action that only changes what is shown.
func moves(f func(*model)) func(*model) tea.Cmd {
	return func(m *model) tea.Cmd { f(m); return nil }
}

// actions lists them all, as the page of help shows them.
func actions() []action {
	return []action{
		{[]string{"down", "j"}, "one message or line down", "-", moves(func(m *model) { m.move(1) })},
		{[]string{"up", "k"}, "one up", "-", moves(func(m *model) { m.move(-1) })},
		{[]string{"pgdown", "space"}, "one page down", "-", moves(func(m *model) { m.move(m.page()) })},
		{[]string{"pgup", "b"}, "one page up", "-", moves(func(m *model) { m.move(-m.page()) })},
		{[]string{"home", "g"}, "first message or line", "--limit 1", moves(func(m *model) { m.move(-whole) })},
		{[]string{"end", "G"}, "last one, and on as more come", "-", moves(func(m *model) { m.move(whole) })},
		{[]string{"]"}, "next message, also while one is read", "-n NUMBER", moves(func(m *model) { m.step(1) })},
		{[]string{"["}, "message before", "-n NUMBER", moves(func(m *model) { m.step(-1) })},
		{[]string{"tab"}, "between list and message", "-", moves((*model).switchFocus)},
		{[]string{"enter"}, "message on the whole screen; in a tree: fold", "-n NUMBER", moves((*model).enter)},
		{[]string{"left", "h"}, "in a tree: fold", "-", moves(func(m *model) { m.foldHere(true) })},
		{[]string{"right", "l"}, "in a tree: unfold", "-", moves(func(m *model) { m.foldHere(false) })},
		{[]string{"esc"}, "back", "-", moves((*model).back)},
		{[]string{"p"}, "envelope, indented", "--pretty", moves(func(m *model) { m.show(document) })},
		{[]string{"t"}, "envelope as a tree", "-V", moves(func(m *model) { m.show(asTree) })},
		{[]string{"x"}, "bytes, and fields of frames by name", "-x", moves(func(m *model) { m.show(asHex) })},
		{[]string{"o"}, "how it became its bytes: shapes, parts", "-x", moves(func(m *model) { m.show(asCarried) })},
		{[]string{"H"}, "with or without the HTTP head", "--head", moves((*model).toggleHead)},
		{[]string{"/"}, "search in this message, then in all", `-Y 'body ~ "TEXT"'`, moves((*model).askSearch)},
		{[]string{"n"}, "next place found", "-", func(m *model) tea.Cmd { return m.searchOn(1) }},
		{[]string{"N"}, "place before", "-", func(m *model) tea.Cmd { return m.searchOn(-1) }},
		{[]string{"Y"}, "filter", "-Y EXPRESSION", moves((*model).askFilter)},
		{[]string{"f"}, "follow this conversation, or all again", "--follow CLIENT", (*model).follow},
		{[]string{"m"}, "mark this message", "-", moves((*model).mark)},
		{[]string{"d"}, "difference from the marked one", "-n NUMBER --pretty", moves((*model).compareMarked)},
		{[]string{"r"}, "send its request again", "(hhfr replay --to URL)", moves((*model).askAgain)},
		{[]string{"s"}, "save to a file", "-n NUMBER -o xml", moves((*model).askSave)},
		{[]string{"y"}, "copy to the clipboard (OSC 52)", "-n NUMBER -o xml", (*model).copy},
		{[]string{"?"}, "this page", "--help", moves((*model).help)},
		{[]string{"q", "ctrl+c"}, "end", "-", nil},
	}
}

// press does what a key is for.
func (m *model) press(key string) tea.Cmd {
	switch key {
	case "q":
		return tea.Quit
	case "ctrl+c":
		return tea.Interrupt
	}
	for _, a := range m.actions {
		if slices.Contains(a.keys, key) {
			m.say(plain, "")
			return a.run(m)
		}
	}
	return nil
}
