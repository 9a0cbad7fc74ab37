package screen

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/inspector"
	"github.com/hhfr/hhfr/internal/replay"
)

// sentAgain is the reply to a request that was sent again.
type sentAgain struct {
	comparison
	what string
	err  error
}

// askAgain asks where to send the request of this exchange again, over hhfr or as plain SOAP.
func (m *screenModel) askAgain(hhfr bool) {
	if m.detail.of < 0 {
		return
	}
	request, reply := m.detail.of, m.mate(m.detail.of)
	if m.detail.entry.Reply {
		request, reply = reply, request
	}
	if request < 0 {
		m.say(bad, "its request is not in the capture")
		return
	}
	e, err := m.log.At(request)
	if err != nil {
		m.say(bad, err.Error())
		return
	}
	if e.FastInfoset {
		m.say(bad, "it was sent in Fast Infoset: hhfr replay sends it as it was")
		return
	}
	as := "plain SOAP"
	if hhfr {
		as = "hhfr"
	}
	m.ask("send it again as "+as+" to: ", addressOf(e), func(text string) (tea.Cmd, error) {
		to, err := url.Parse(text)
		if err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" {
			return nil, fmt.Errorf("%q is no http or https URL", text)
		}
		m.say(plain, "sent; waiting for the reply …")
		return func() tea.Msg { return m.sendAgain(request, reply, to, hhfr) }, nil
	})
}

// addressOf is the URL that a request was sent to, as far as that is known.
func addressOf(e *inspector.LogEntry) string {
	server := e.Server()
	if !server.IsValid() {
		return "http://"
	}
	u := url.URL{Scheme: "http", Host: server.String(), Path: e.Path}
	if slices.Contains([]uint16{443, 8443}, server.Port()) {
		u.Scheme = "https"
	}
	line, _, _ := strings.Cut(string(e.Head), "\r\n")
	if words := strings.Fields(line); len(words) > 1 && strings.HasPrefix(words[1], "/") {
		return u.Scheme + "://" + u.Host + words[1]
	}
	return u.String()
}

// mate is the reply to a request, or the request of a reply; -1: it is not there.
func (m *screenModel) mate(n int) int {
	const farthest = 4096 // messages
	e, err := m.log.At(n)
	if err != nil {
		return -1
	}
	step := 1
	if e.Reply {
		step = -1
	}
	for k := n + step; k >= 0 && k < m.log.Len() && k != n+step*farthest; k += step {
		o, err := m.log.At(k)
		if err == nil && o.Number == e.Number && o.Reply != e.Reply && !o.Interim {
			return k
		}
	}
	return -1
}

// sendAgain sends a request, over hhfr or as plain SOAP, and compares the reply with the recorded
// one.
func (m *screenModel) sendAgain(request, reply int, to *url.URL, hhfr bool) (done sentAgain) {
	asked, err := m.log.Whole(request)
	if err != nil {
		return sentAgain{err: err}
	}
	var answer *capture.Decoded
	if reply >= 0 {
		e, err := m.log.Whole(reply)
		if err != nil {
			return sentAgain{err: err}
		}
		answer = &e.Decoded
	}
	alone, err := replay.Alone(&asked.Decoded, answer, asked.Path)
	if err != nil {
		return sentAgain{err: err}
	}
	out, err := alone.Once(m.ctx, to, hhfr)
	if err != nil {
		return sentAgain{err: err}
	}
	var recorded []byte
	was := "no reply is recorded"
	if answer != nil {
		recorded, was = answer.Body, fmt.Sprintf("%d reply, recorded", asked.Number)
	}
	now := fmt.Sprintf("now: %d, %v", out.Status(), out.Took)
	done.comparison = newComparison([2]string{was, now}, recorded, out.Body)
	switch d := out.Difference; {
	case answer == nil:
		done.what = "no reply is recorded to compare with"
	case d == nil:
		done.what = "the reply is that which was recorded, byte for byte"
	case d.What == "status":
		done.what = fmt.Sprintf("status %s was recorded, %s came", d.Recorded, d.Now)
	default:
		done.what = fmt.Sprintf("the reply differs from byte %d on", d.Offset)
	}
	return done
}

// replayed shows how the reply differs.
func (m *screenModel) replayed(msg sentAgain) {
	if msg.err != nil {
		m.say(bad, msg.err.Error())
		return
	}
	m.compareWith(msg.comparison)
	m.say(plain, msg.what)
}
