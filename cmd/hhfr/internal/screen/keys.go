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
	run  func(*screenModel) tea.Cmd
}

// moves is an action that only changes what is shown.
func moves(f func(*screenModel)) func(*screenModel) tea.Cmd {
	return func(m *screenModel) tea.Cmd { f(m); return nil }
}

// actions lists them all, as the page of help shows them.
func actions() []action {
	return []action{
		{[]string{"down", "j"}, "one message or line down", "-", moves(func(m *screenModel) { m.move(1) })},
		{[]string{"up", "k"}, "one up", "-", moves(func(m *screenModel) { m.move(-1) })},
		{[]string{"pgdown", "space"}, "one page down", "-", moves(func(m *screenModel) { m.move(m.page()) })},
		{[]string{"pgup", "b"}, "one page up", "-", moves(func(m *screenModel) { m.move(-m.page()) })},
		{[]string{"home", "g"}, "first message or line", "--limit 1", moves(func(m *screenModel) { m.move(-whole) })},
		{[]string{"end", "G"}, "last one, and on as more come", "-", moves(func(m *screenModel) { m.move(whole) })},
		{[]string{"]"}, "next message, also while one is read", "-n NUMBER", moves(func(m *screenModel) { m.step(1) })},
		{[]string{"["}, "message before", "-n NUMBER", moves(func(m *screenModel) { m.step(-1) })},
		{[]string{"tab"}, "between list and message", "-", moves((*screenModel).switchFocus)},
		{[]string{"enter"}, "message on the whole screen; in a tree: fold", "-n NUMBER", moves((*screenModel).enter)},
		{[]string{"left", "h"}, "in a tree: fold", "-", moves(func(m *screenModel) { m.foldHere(true) })},
		{[]string{"right", "l"}, "in a tree: unfold", "-", moves(func(m *screenModel) { m.foldHere(false) })},
		{[]string{"esc"}, "back", "-", moves((*screenModel).back)},
		{[]string{"p"}, "envelope, indented", "--pretty", moves(func(m *screenModel) { m.show(document) })},
		{[]string{"t"}, "envelope as a tree", "-V", moves(func(m *screenModel) { m.show(asTree) })},
		{[]string{"x"}, "bytes, and fields of frames by name", "-x", moves(func(m *screenModel) { m.show(asHex) })},
		{[]string{"o"}, "how it became its bytes: bits of each value", "--bits",
			moves(func(m *screenModel) { m.show(asCarried) })},
		{[]string{"H"}, "with or without the HTTP head", "--head", moves((*screenModel).toggleHead)},
		{[]string{"/"}, "search in this message, then in all", `-Y 'body ~ "TEXT"'`, moves((*screenModel).askSearch)},
		{[]string{"n"}, "next place found", "-", func(m *screenModel) tea.Cmd { return m.searchOn(1) }},
		{[]string{"N"}, "place before", "-", func(m *screenModel) tea.Cmd { return m.searchOn(-1) }},
		{[]string{"Y"}, "filter", "-Y EXPRESSION", moves((*screenModel).askFilter)},
		{[]string{"f"}, "follow this conversation, or all again", "--follow CLIENT", (*screenModel).follow},
		{[]string{"m"}, "mark this message", "-", moves((*screenModel).mark)},
		{[]string{"d"}, "difference from the marked one", "-n NUMBER --pretty", moves((*screenModel).compareMarked)},
		{[]string{"r"}, "send its request again, as plain SOAP", "(hhfr replay --as soap)",
			moves(func(m *screenModel) { m.askAgain(false) })},
		{[]string{"R"}, "send its request again, over hhfr", "(hhfr replay --as hhfr)",
			moves(func(m *screenModel) { m.askAgain(true) })},
		{[]string{"s"}, "save to a file", "-n NUMBER -o xml", moves((*screenModel).askSave)},
		{[]string{"y"}, "copy to the clipboard (OSC 52)", "-n NUMBER -o xml", (*screenModel).copy},
		{[]string{"?"}, "this page", "--help", moves((*screenModel).help)},
		{[]string{"q", "ctrl+c"}, "end", "-", nil},
	}
}

// press does what a key is for.
func (m *screenModel) press(key string) tea.Cmd {
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
