package screen

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/chosen"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/facts"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/listing"
	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/inspector"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/soap"
)

var update = flag.Bool("update", false, "write golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stored stores messages as hhfr inspect does.
type stored struct {
	*inspector.Log
	seen listing.Seen
}

func (s *stored) add(t *testing.T, m *capture.Decoded) {
	t.Helper()
	one := s.seen.Of(m)
	require.NoError(t, s.Append(m, inspector.LogEntry{Call: one.Call, Took: one.Took, Control: one.Control}))
}

func newStored(t *testing.T) *stored {
	t.Helper()
	s := &stored{Log: inspector.NewLog()}
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// opened is a model of captures that were read.
func opened(t *testing.T, color bool, files ...string) *screenModel {
	t.Helper()
	var inputs []capture.Input
	for _, name := range files {
		inputs = append(inputs, capture.Input{
			Name: name, Octets: bytes.NewReader(shared.Read(t, shared.Testdata(t, "pcap", name))),
		})
	}
	log := newStored(t)
	r := capture.NewReader(t.Context(), capture.DecodeConfig{Carriage: true, Frames: true})
	for ev, err := range r.Captures(t.Context(), inputs...) {
		require.NoError(t, err)
		if ev.Message != nil {
			log.add(t, ev.Message)
		}
	}
	return begun(newModel(t.Context(), over{}, log.Log, color))
}

// over is a source of which all was read.
type over struct{}

func (over) Name() string                            { return "made.pcap" }
func (over) Grown(context.Context) (_ bool, _ error) { return true, nil }
func (over) Choice() (c chosen.Choice)               { return c }
func (over) Share() int                              { return -1 }

// made is a model of messages that are made: requests and replies with these bodies.
func made(t *testing.T, color bool, bodies ...string) *screenModel {
	t.Helper()
	log := newStored(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ends := [2]netip.AddrPort{netip.MustParseAddrPort("10.0.0.7:2001"), netip.MustParseAddrPort("10.0.0.1:80")}
	for i, body := range bodies {
		m := &capture.Decoded{
			Number: i/2 + 1, Reply: i%2 == 1, Src: ends[i%2], Dst: ends[1-i%2], State: capture.Unchecked,
			First: at.Add(time.Duration(i) * time.Millisecond), Last: at.Add(time.Duration(i) * time.Millisecond),
			Head: []byte("POST / HTTP/1.1\r\nX-Number: " + fmt.Sprint(i) + "\r\n\r\n"),
			Body: []byte(body), BodyOctets: int64(len(body)), Wire: int64(len(body)) + 40,
		}
		if m.Reply {
			m.Head = []byte("HTTP/1.1 200 OK\r\n\r\n")
		}
		m.Operation = soap.Recognize(m.Body).Operation
		log.add(t, m)
	}
	return begun(newModel(t.Context(), over{}, log.Log, color))
}

func begun(m *screenModel) *screenModel {
	finish(m, m.Init())
	return m
}

// finish does what commands do, but for those that wait for the user.
func finish(m *screenModel, cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case tea.BatchMsg:
		for _, c := range msg {
			finish(m, c)
		}
	case grew, scanned, searched:
		_, next := m.Update(msg)
		finish(m, next)
	}
}

var keyCodes = map[string]rune{
	"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "down": tea.KeyDown, "up": tea.KeyUp,
	"pgdown": tea.KeyPgDown, "pgup": tea.KeyPgUp, "left": tea.KeyLeft, "right": tea.KeyRight,
	"backspace": tea.KeyBackspace, "home": tea.KeyHome, "end": tea.KeyEnd, "delete": tea.KeyDelete,
}

// keys presses keys: names of keys, or texts that are typed.
func keys(m *screenModel, all ...string) (last tea.Cmd) {
	for _, k := range all {
		if code, ok := keyCodes[k]; ok {
			_, last = m.Update(tea.KeyPressMsg{Code: code})
			finish(m, last)
			continue
		}
		for _, r := range k {
			_, last = m.Update(tea.KeyPressMsg{Code: r, Text: string(r)})
			finish(m, last)
		}
	}
	return last
}

func size(m *screenModel, width, height int) {
	m.Update(tea.WindowSizeMsg{Width: width, Height: height})
}

var sequences = regexp.MustCompile("\x1b\\[[0-9;]*m")

// check looks at a screen: each row has the width, and nothing in it is obeyed but what colors.
func check(t *testing.T, m *screenModel) string {
	t.Helper()
	text := m.View().Content
	rows := strings.Split(text, "\n")
	assert.Len(t, rows, m.height)
	for i, row := range rows {
		bare := sequences.ReplaceAllString(row, "")
		assert.Equal(t, m.width, columns(bare), "row %d: %q", i, row)
		for _, r := range bare {
			assert.True(t, unicode.IsGraphic(r), "row %d has %q", i, r)
		}
	}
	return text
}

// golden compares a screen with a file.
func golden(t *testing.T, m *screenModel, name string) {
	t.Helper()
	text := check(t, m) + "\n"
	if !m.color {
		lines := strings.Split(sequences.ReplaceAllString(text, ""), "\n")
		for i := range lines {
			lines[i] = strings.TrimRight(lines[i], " ")
		}
		text = strings.Join(lines, "\n")
	}
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "-update writes it")
	assert.Equal(t, string(want), text, name)
}

// Screens of a recording, with keys that lead to them.
func TestScreens(t *testing.T) {
	for name, press := range map[string][]string{
		"list":    nil,
		"message": {"j", "enter"},
		"tree":    {"t", "tab", "j", "j", "left"},
		"carried": {"G", "o"},
		"bytes":   {"x", "tab", "pgdown"},
		"head":    {"H"},
		"filter":  {"Y", "reply && bytes > 10", "enter"},
		"caret":   {"Y", "reply && byte > 10", "enter"},
		"search":  {"/", "envelope", "enter", "n"},
		"compare": {"m", "j", "j", "d"},
		"help":    {"?"},
	} {
		for _, s := range [][2]int{{80, 24}, {200, 50}} {
			for _, color := range []bool{false, true} {
				if s[0] == 200 && name != "list" && name != "tree" && name != "compare" {
					continue
				}
				if color && name != "list" && name != "search" && name != "compare" {
					continue
				}
				m := opened(t, color, "session.pcapng", "plain.pcapng")
				size(m, s[0], s[1])
				keys(m, press...)
				kind := "plain"
				if color {
					kind = "color"
				}
				golden(t, m, fmt.Sprintf("%s-%dx%d-%s.txt", name, s[0], s[1], kind))
			}
		}
	}
}

// With hostile messages nothing reaches the terminal but characters, in no form and at no size.
func TestHostileMessages(t *testing.T) {
	bad := "<a x=\"\x1b]0;t\x07\">\x1b[2J\u202eabc\u2066\r\n\tzero\u200b\x9b31m日本語日本語 e\u0301</a>"
	for _, color := range []bool{true, false} {
		m := made(t, color, bad, bad, "", strings.Repeat(bad, 100), "\x1b[31m<\x00", strings.Repeat("日", 5000))
		for _, s := range [][2]int{{80, 24}, {200, 50}, {20, 8}, {141, 7}} {
			size(m, s[0], s[1])
			keys(m, "g")
			for range 6 {
				for _, form := range []string{"p", "t", "x", "H"} {
					keys(m, form)
					check(t, m)
				}
				keys(m, "enter")
				check(t, m)
				keys(m, "G")
				check(t, m)
				keys(m, "esc", "m", "j", "d")
				check(t, m)
				keys(m, "esc")
			}
		}
		m.Update(tea.PasteMsg{Content: "ignored"})
		keys(m, "Y")
		m.Update(tea.PasteMsg{Content: "op == \x1b[2J\u202e\nx"})
		keys(m, "enter")
		check(t, m)
		assert.Equal(t, "op == [2J x", string(m.prompt.text))
	}
}

func TestSmallScreens(t *testing.T) {
	m := opened(t, true, "session.pcapng")
	for width := 1; width < 60; width += 7 {
		for height := 1; height < 12; height++ {
			size(m, width, height)
			for _, k := range []string{"enter", "esc", "t", "?", "esc", "m", "d", "esc", "Y", "esc"} {
				keys(m, k)
				assert.NotPanics(t, func() { m.View() })
			}
		}
	}
}

// numbers are those of the messages that are listed.
func numbers(t *testing.T, m *screenModel) (list []string) {
	t.Helper()
	for i := range m.list.length(m.log.Len()) {
		e, err := m.log.At(m.list.nth(i))
		require.NoError(t, err)
		list = append(list, fmt.Sprintf("%d %s", e.Number, facts.KindOf(&e.Decoded)))
	}
	return list
}

func TestFilter(t *testing.T) {
	m := made(t, false, "<a>x</a>", "<a/>", "<b>x</b>", "<b/>", "<c/>")
	keys(m, "j", "j", "Y", "body ~ \"x\"", "enter")
	assert.Equal(t, []string{"1 request", "2 request"}, numbers(t, m))
	assert.Equal(t, "<b>x</b>", string(m.detail.entry.Body), "the message stays that which was shown")
	assert.Contains(t, check(t, m), "2 of 5 messages  filter: body ~ \"x\"")

	keys(m, "Y", " &&", "enter")
	assert.Contains(t, check(t, m), strings.Repeat(" ", len("filter: body ~ \"x\" &&"))+"^ a comparison is missing")
	keys(m, "left", "left", "left", "backspace", "esc")
	assert.Equal(t, []string{"1 request", "2 request"}, numbers(t, m), "the filter stays")

	keys(m, "Y")
	m.Update(tea.KeyPressMsg{Code: 'u', Mod: tea.ModCtrl})
	keys(m, "bytes > 999", "enter")
	assert.Empty(t, numbers(t, m))
	assert.Contains(t, check(t, m), "no message is chosen")
	for _, k := range []string{"s", "y", "f", "m", "d", "r", "n", "N", "t", "j", "G", "enter", "/", "x", "enter"} {
		keys(m, k)
		check(t, m)
	}
}

func TestFollow(t *testing.T) {
	m := opened(t, false, "session.pcapng", "plain.pcapng")
	all := len(numbers(t, m))
	keys(m, "f")
	some := len(numbers(t, m))
	assert.Less(t, some, all)
	assert.Regexp(t, `^client == `, m.list.texts.String())
	check(t, m)
	keys(m, "f")
	assert.Len(t, numbers(t, m), all)
	keys(m, "G", "f")
	assert.NotEqual(t, all, len(numbers(t, m)))
}

func TestSearch(t *testing.T) {
	m := made(t, false, "<a>1</a>", "<a>Needle needle</a>", "<a>2</a>", "<a>NEEDLE</a>")
	keys(m, "/", "needle", "enter")
	at := func() string { return fmt.Sprint(m.list.at, " ", m.said) }
	assert.Equal(t, "1 1 of 2 in this message; n goes on, also to other messages", at())
	keys(m, "n")
	assert.Equal(t, "1 2 of 2 in this message; n goes on, also to other messages", at())
	keys(m, "n")
	assert.Equal(t, "3 1 of 1 in this message; n goes on, also to other messages", at())
	keys(m, "n")
	assert.Equal(t, 1, m.list.at, "on from the beginning")
	keys(m, "N")
	assert.Equal(t, 3, m.list.at)
	keys(m, "esc", "n")
	assert.Equal(t, "/ searches", m.said)
	keys(m, "/", "Needle", "enter")
	assert.Equal(t, 1, m.list.at, "a capital is one")
	keys(m, "/")
	m.Update(tea.KeyPressMsg{Code: 'u', Mod: tea.ModCtrl})
	keys(m, "X-Number: 2", "enter")
	assert.Equal(t, "2 found in the HTTP head: H shows it", at())
	keys(m, "/")
	m.Update(tea.KeyPressMsg{Code: 'u', Mod: tea.ModCtrl})
	keys(m, "nowhere", "enter")
	assert.Equal(t, "no message has nowhere", m.said)
}

func TestSave(t *testing.T) {
	t.Chdir(t.TempDir())
	long := strings.Repeat("<a>\x1b</a>", 200_000)
	m := made(t, false, "<a>\x1b</a>", "<b/>", long)
	keys(m, "s", "enter")
	assert.Equal(t, "saved to 000001-request.xml: 8 bytes", m.said)
	b, err := os.ReadFile("000001-request.xml")
	require.NoError(t, err)
	assert.Equal(t, "<a>\x1b</a>", string(b))

	require.NoError(t, os.WriteFile("000001-reply.xml", []byte("mine"), 0o600))
	keys(m, "j", "s", "enter")
	assert.Contains(t, check(t, m), "000001-reply.xml is there already; overwrite it (yes or no)? no")
	keys(m, "enter")
	b, err = os.ReadFile("000001-reply.xml")
	require.NoError(t, err)
	assert.Equal(t, "mine", string(b))
	keys(m, "s", "enter", "backspace", "backspace", "yes", "enter")
	b, err = os.ReadFile("000001-reply.xml")
	require.NoError(t, err)
	assert.Equal(t, "<b/>", string(b))

	keys(m, "s")
	m.Update(tea.KeyPressMsg{Code: 'u', Mod: tea.ModCtrl})
	keys(m, "enter")
	assert.Contains(t, check(t, m), "a name is missing")
	keys(m, "no/such/folder", "enter")
	assert.Contains(t, check(t, m), "no such file")
	keys(m, "esc")
}

func TestCopy(t *testing.T) {
	m := made(t, false, "<a>\t1?</a>", "<a>\x1b[31m</a>", strings.Repeat("<a/>", 20_000))
	copied := func() string {
		cmd := keys(m, "y")
		if cmd == nil {
			return "nothing: " + m.said
		}
		return fmt.Sprint(cmd()) + ": " + m.said
	}
	assert.Equal(t, "<a> 1?</a>: copied 10 bytes", copied())
	keys(m, "j")
	assert.Equal(t, "<a>?[31m</a>: copied with 1 question mark for what a terminal would obey: s saves the bytes",
		copied())
	keys(m, "j")
	assert.Equal(t, "nothing: 80 kB are too many for the clipboard of a terminal: s saves them", copied())
}

func TestTreeFolds(t *testing.T) {
	m := made(t, false, `<a><b x="1"><c>1</c></b><d>2</d></a>`)
	keys(m, "t", "tab")
	rows := func() (all []string) {
		for i := range m.detail.rows {
			row := strings.TrimRight(sequences.ReplaceAllString(m.detailRow(i, 30), ""), " ")
			if strings.HasSuffix(row, " envelope") || all != nil {
				all = append(all, row)
			}
		}
		return all
	}
	whole := []string{"- envelope", "  - a", "    - b @x 1", "        c 1", "      d 2"}
	assert.Equal(t, whole, rows())
	keys(m, "G", "k", "k", "enter")
	folded := []string{"- envelope", "  - a", "    + b @x 1", "      d 2"}
	assert.Equal(t, folded, rows())
	keys(m, "right")
	assert.Equal(t, whole, rows())
	keys(m, "j", "left")
	assert.Equal(t, folded, rows(), "what is around is folded")
	keys(m, "left")
	assert.Equal(t, []string{"- envelope", "  + a"}, rows())
	keys(m, "left")
	assert.Equal(t, []string{"+ envelope"}, rows())
	keys(m, "right", "j", "right", "x", "t")
	assert.Equal(t, folded, rows(), "folds stay while the message is shown otherwise")
	keys(m, "g", "left", "enter")
	assert.Equal(t, folded, rows(), "a line with nothing below it")
}

func TestCompare(t *testing.T) {
	m := made(t, true, "<a><b>1</b><c>same</c><d>x</d></a>", "<a><b>22</b><c>same</c><e/></a>")
	keys(m, "d")
	assert.Equal(t, "m marks the message to compare with", m.said)
	keys(m, "m", "d")
	assert.Equal(t, "no line differs", m.said)
	keys(m, "esc", "j", "d")
	text := check(t, m)
	assert.Contains(t, text, "<b>"+m.paint(differs, "1")+"</b>")
	assert.Contains(t, text, "<b>"+m.paint(differs, "22")+"</b>")
	assert.Equal(t, "2 places with differences: n and N go to the next one and back", m.said)
	keys(m, "n", "N", "G", "g", "q")
}

// Messages are listed as they come, and the cursor stays where it is, or at the end.
func TestMoreComes(t *testing.T) {
	m := made(t, false, "<a/>", "<a/>")
	m.ended = false
	log := &stored{Log: m.log}
	more := func() {
		d := &capture.Decoded{Number: 9, Body: []byte("<n/>"), BodyOctets: 4, State: capture.Unchecked}
		log.add(t, d)
		_, cmd := m.Update(grew{})
		_ = cmd // it waits for more
	}
	more()
	assert.Equal(t, 0, m.list.at)
	keys(m, "G")
	more()
	assert.Equal(t, 3, m.list.at)
	assert.Equal(t, "<n/>", string(m.detail.entry.Body))
	keys(m, "k")
	more()
	assert.Equal(t, 2, m.list.at)
	assert.Contains(t, check(t, m), "5 messages, reading")
	keys(m, "q")
}

// The page has each key, and the flags of decode that do the same.
func TestKeysAreOnThePage(t *testing.T) {
	var rows strings.Builder
	for _, a := range actions() {
		flags := a.flag
		if flags != "-" {
			flags = "`" + strings.ReplaceAll(flags, "|", `\|`) + "`"
		}
		fmt.Fprintf(&rows, "| `%s` | %s | %s |\n", strings.Join(a.keys, "` `"), a.does, flags)
	}
	page := filepath.Join("..", "..", "..", "..", "docs", "inspector.md")
	text := string(shared.Read(t, page))
	begin, rest, ok := strings.Cut(text, "| key | | hhfr decode |\n|---|---|---|\n")
	require.True(t, ok)
	table, after, ok := strings.Cut(rest, "\n\n")
	require.True(t, ok)
	if *update {
		begin += "| key | | hhfr decode |\n|---|---|---|\n"
		text = begin + strings.TrimSuffix(rows.String(), "\n") + "\n\n" + after
		require.NoError(t, os.WriteFile(page, []byte(text), 0o600))
		return
	}
	assert.Equal(t, strings.TrimSuffix(rows.String(), "\n"), table, "-update writes it")
}
