// Package page is hhfr decode in a page: the messages of captures, listed, chosen and shown. The
// program below it (wasm) puts that into a browser.
package page

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/facts"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/filter"
	"github.com/hhfr/hhfr/internal/flow"
	"github.com/hhfr/hhfr/internal/tlsrecord"
	"github.com/hhfr/hhfr/internal/xmltext"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/ctxstore/transfer"
)

// mostBodies bounds the envelopes that a page has, in bytes: it has no file for them.
const mostBodies = 512 << 20

// DroppedFile is a file that somebody has given to a page.
type DroppedFile struct {
	Name   string
	Octets []byte
}

// Viewer has the messages of captures, for one page.
type Viewer struct {
	all    []viewed
	shown  []int // in all
	bodies int64 // length of those that are there, in bytes
	sum    *capture.Summary
}

type viewed struct {
	facts.Asked
	left bool // its body is left out
}

// Open decodes files: captures, and what helps to decode them: what hhfr context export wrote of a
// store, key logs of TLS. What each one is says how it begins.
func Open(files []DroppedFile) (*Viewer, error) {
	ctx := context.Background()
	cfg := capture.DecodeConfig{Keys: new(tlsrecord.KeyLog), Starts: true}
	var inputs []capture.Input
	for _, f := range files {
		switch start := f.Octets[:min(len(f.Octets), 64)]; {
		case flow.IsCapture(start):
			inputs = append(inputs, capture.Input{Name: f.Name, Octets: bytes.NewReader(f.Octets)})
		case bytes.HasPrefix(start, []byte(`{"contexts":`)):
			if cfg.Store == nil {
				cfg.Store = memory.New(memory.Config{MaxBytes: mostBodies})
			}
			if err := entries(ctx, cfg.Store, f.Octets); err != nil {
				return nil, fmt.Errorf("%s: %w", f.Name, err)
			}
		case cfg.Keys.Add(f.Octets) == 0:
			return nil, fmt.Errorf("%s: neither a capture (pcap, pcapng), nor a store of hhfr context export, nor a "+
				"log of TLS keys", f.Name)
		}
	}
	if len(inputs) == 0 {
		return nil, errors.New("none of these files is a capture (pcap, pcapng)")
	}
	r, v := capture.NewReader(ctx, cfg), new(Viewer)
	var seen facts.SeenRequests
	for ev, err := range r.Captures(ctx, inputs...) {
		if err != nil {
			return nil, err
		}
		if ev.Message != nil {
			v.add(ev.Message, &seen)
		}
	}
	v.sum = r.Summary()
	return v, v.Choose("", "")
}

func entries(ctx context.Context, store ctxstore.Store, file []byte) error {
	_, err := transfer.Import(ctx, store, bytes.NewReader(file), transfer.ImportOptions{})
	return err
}

// add keeps a message, which is the reader's until the next one.
func (v *Viewer) add(d *capture.Decoded, seen *facts.SeenRequests) {
	one := *d
	one.Head, one.Body = slices.Clone(d.Head), nil
	m := viewed{Asked: facts.Asked{Decoded: &one, Kind: facts.KindOf(&one)}}
	if v.bodies += int64(len(d.Body)); v.bodies <= mostBodies {
		one.Body = slices.Clone(d.Body)
	} else {
		m.left = true
	}
	m.Took, m.Call = seen.Of(d)
	v.all = append(v.all, m)
}

// Choose has [Viewer.Row] list the messages for which an expression holds (that of -Y), and in
// whose envelopes a text is, in whatever case unless it has a capital. Of a wrong expression the
// error says what is wrong, and then nothing changes.
func (v *Viewer) Choose(expression, text string) error {
	var wanted *filter.Expression
	if strings.TrimSpace(expression) != "" {
		var err error
		wanted, err = filter.Parse(expression)
		var syntax *filter.SyntaxError
		if errors.As(err, &syntax) {
			return fmt.Errorf("%w\n%s", err, syntax.Caret())
		}
	}
	needle, anyCase := []byte(text), strings.ToLower(text) == text
	v.shown = v.shown[:0]
	for i := range v.all {
		m := &v.all[i]
		if len(needle) > 0 && !contains(m.Body, needle, anyCase) {
			continue
		}
		if wanted != nil {
			if c := m.Candidate(); !wanted.Holds(&c) {
				continue
			}
		}
		v.shown = append(v.shown, i)
	}
	return nil
}

func contains(body, needle []byte, anyCase bool) bool {
	return bytes.Contains(body, needle) || anyCase && bytes.Contains(bytes.ToLower(body), needle)
}

// Len is how many messages are chosen.
func (v *Viewer) Len() int { return len(v.shown) }

// Columns are the titles of what [Viewer.Row] has.
var Columns = []string{
	"number", "time", "message", "operation", "soap", "status", "duration", "state", "source", "destination", "session",
	"wire",
}

// Row is the row of a message, of those that are chosen.
func (v *Viewer) Row(i int) []string {
	m := &v.all[v.shown[i]]
	time, status, took := "-", "", ""
	if !m.First.IsZero() {
		time = m.First.UTC().Format("15:04:05.000000")
	}
	if code := m.Status(); code > 0 {
		status = strconv.Itoa(code)
	}
	if m.Took > 0 {
		took = fmt.Sprintf("%.1f ms", m.Took.Seconds()*1000)
	}
	session := m.SessionString()
	row := []string{
		numberOf(m), time, m.Kind, cmp.Or(m.Operation.Local, "-"), strconv.FormatInt(m.BodyOctets, 10), status, took,
		stateOf(m), addressOf(m.Src), addressOf(m.Dst), session[:min(len(session), 8)], strconv.FormatInt(m.Wire, 10),
	}
	for i := range row {
		row[i] = printing.Printable(row[i])
	}
	return row
}

func numberOf(m *viewed) string {
	if m.Number == 0 {
		return "-" // a negotiation
	}
	return strconv.Itoa(m.Number)
}

func addressOf(a netip.AddrPort) string {
	if !a.IsValid() {
		return "-"
	}
	return a.String()
}

func stateOf(m *viewed) string {
	state := m.State.String()
	if m.Why != "" {
		state += ": " + m.Why
	}
	if fault := m.Fault(); fault != "" {
		state += ", fault " + fault
	}
	return state
}

// Show is a message that is chosen: its HTTP head, and its envelope, indented if pretty. What is
// not to be seen in it is replaced by a sign for that.
func (v *Viewer) Show(i int, pretty bool) (head, body string) {
	m := &v.all[v.shown[i]]
	octets := m.Body
	if pretty {
		octets = xmltext.Indented(octets)
	}
	body = visible(octets)
	switch shown := int64(len(m.Body)); {
	case m.left:
		body = fmt.Sprintf("(left out: a page has %d MiB of envelopes; hhfr decode -n %s has it)", mostBodies>>20,
			numberOf(m))
	case shown < m.BodyOctets:
		body += fmt.Sprintf("\n(%d bytes more: hhfr decode -n %s has them)", m.BodyOctets-shown, numberOf(m))
	}
	return visible(m.Head), body
}

// visible shows what has no sign of its own, such as an escape or a change of the direction of
// writing, by a sign.
func visible(b []byte) string {
	return strings.Map(func(r rune) rune {
		if r == '\r' {
			return -1
		}
		if r != '\t' && printing.IsHidden(r) {
			return '\uFFFD'
		}
		return r
	}, string(b))
}

// Found says what the captures have, and what they lack.
func (v *Viewer) Found() string {
	c := v.sum.Counts()
	list := []string{printing.Count(v.sum.Stats.Packets, "packet"), printing.Count(c.Messages, "message")}
	for _, one := range []struct {
		n    int
		what string
	}{
		{c.Verified, "verified"}, {c.Unchecked, "unchecked"}, {c.Unverified, "unverified"}, {c.Withdrawn, "withdrawn"},
		{c.Incomplete, "incomplete"}, {c.Cancelled, "cancelled"}, {c.Undecodable, "undecodable"},
		{v.sum.Decrypted, "of TLS decrypted"},
	} {
		if one.n > 0 {
			list = append(list, fmt.Sprintf("%d %s", one.n, one.what))
		}
	}
	if gaps := v.sum.Stats.Gaps; gaps > 0 {
		list = append(list, printing.Count(gaps, "gap"))
	}
	if v.sum.Stats.Truncated {
		list = append(list, "cut off or damaged")
	}
	if c.Messages == 0 {
		list = append(list, "found instead: "+printing.Kinds(v.sum.Others))
	}
	return strings.Join(list, ", ")
}
