// Package chosen is which messages of a capture are shown, by flags and a filter, and what of a
// message these ask.
package chosen

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/filter"
	"github.com/hhfr/hhfr/internal/xmltext"
	"github.com/hhfr/hhfr/pkg/soap"
)

// Choice is which messages are shown, and how much of them.
type Choice struct {
	// Head and Pretty: messages are shown, with their HTTP heads, and indented.
	Head, Pretty bool
	// Limit is after how many messages the list ends; 0: never.
	Limit int

	filter, operation, follow string
	number                    int
	fault                     bool
	slower                    time.Duration
	expression                *filter.Expression // nil: all
}

// Flags declares the flags.
func (v *Choice) Flags(f *pflag.FlagSet) {
	f.IntVarP(&v.number, "number", "n", 0, "show the messages of this exchange, whole")
	f.StringVarP(&v.filter, "filter", "Y", "",
		"only messages for which this `EXPRESSION` holds: op == \"sum\" && bytes > 200 && !fault")
	f.StringVar(&v.operation, "op", "", "only messages of this `OPERATION`, and replies to it")
	f.BoolVar(&v.fault, "fault", false, "only SOAP faults")
	f.DurationVar(&v.slower, "slower", 0, "only replies that came so long after their requests")
	f.StringVar(&v.follow, "follow", "",
		"show one conversation, whole: a `CLIENT` as IP or IP:PORT, or the beginning of a session's UUID")
	f.IntVar(&v.Limit, "limit", 0, "end after so many messages")
	f.BoolVar(&v.Head, "head", false, "show messages, with their HTTP heads")
	f.BoolVar(&v.Pretty, "pretty", false, "show messages, indented")
}

// Whole reports whether messages themselves are shown.
func (v *Choice) Whole() bool { return v.number > 0 || v.follow != "" || v.Head || v.Pretty }

// Shown is an envelope as it is shown.
func (v *Choice) Shown(body []byte) []byte {
	if v.Pretty {
		return xmltext.Indented(body)
	}
	return body
}

// Prepare makes of all flags what is asked. Errors are wrong usage.
func (v *Choice) Prepare() error {
	if v.number < 0 || v.Limit < 0 || v.slower < 0 {
		return exit.Usagef("", "--number, --limit and --slower are above 0")
	}
	asked := []string{v.filter}
	if v.number > 0 {
		asked = append(asked, "number == "+strconv.Itoa(v.number))
	}
	if v.fault {
		asked = append(asked, "fault")
	}
	if v.slower > 0 {
		asked = append(asked, "duration >= "+v.slower.String())
	}
	if v.operation != "" {
		asked = append(asked, `op ~ "^`+regexp.QuoteMeta(v.operation)+`(Response|Result)?$"`)
	}
	if v.follow != "" {
		if _, err := filter.Parse("host == " + v.follow); err == nil {
			asked = append(asked, "client == "+v.follow)
		} else {
			asked = append(asked, `session ~ "^`+regexp.QuoteMeta(v.follow)+`"`)
		}
	}
	v.expression = nil
	for i, text := range asked {
		if i == 0 && text == "" {
			continue
		}
		one, err := filter.Parse(text)
		var syntax *filter.SyntaxError
		if errors.As(err, &syntax) {
			return exit.Usage(fmt.Errorf("--filter: %w\n%s", err, syntax.Caret()), "")
		}
		v.expression = v.expression.And(one)
	}
	return nil
}

// Asked is a message with what its exchange tells of it.
type Asked struct {
	*capture.Decoded
	Kind string
	// Took is how long a reply took from the first byte of its request; 0: that is not known.
	Took time.Duration
}

// Takes reports whether a message is shown.
func (v *Choice) Takes(m Asked) bool {
	return v.expression == nil || v.expression.Holds(&filter.Candidate{
		Number: m.Number, Packet: m.Packet, Status: m.Status(), Operation: m.Operation.Local,
		Session: m.SessionString(), Kind: m.Kind, State: m.State.String(), Fault: m.Fault(),
		Client: m.Client(), Server: m.Server(), Source: m.Src, Target: m.Dst,
		BodyOctets: m.BodyOctets, WireOctets: m.Wire, Duration: m.Took, Time: m.First, HHFR: m.HHFR,
		Head: m.Head, Body: m.Body,
	})
}

// Status is that of a reply in HTTP; 0: it has none.
func (m Asked) Status() int {
	switch {
	case !m.Reply:
		return 0
	case len(m.Head) == 0 && m.HHFR:
		return http.StatusOK // of the default head (negotiation.md, section 4)
	}
	_, rest, _ := strings.Cut(string(m.Head[:min(len(m.Head), 32)]), " ")
	code, _, _ := strings.Cut(rest, " ")
	n, _ := strconv.Atoi(strings.TrimSpace(code))
	return n
}

// maxFault is the longest fault whose reason is shown, in bytes.
const maxFault = 1 << 20

// Fault is the code and the reason of a fault; empty for other messages.
func (m Asked) Fault() string {
	if !m.Reply || m.Operation.Local != "Fault" || !soap.IsFault(m.Body) {
		return ""
	}
	code := string(soap.FaultCodeIn(m.Body))
	if int64(len(m.Body)) == m.BodyOctets {
		if e, err := soap.Parse(m.Body, soap.Limits{MaxBytes: maxFault}); err == nil {
			if f, ok := e.Fault(); ok {
				return fmt.Sprintf("%s: %s", code, f.Reason)
			}
		}
	}
	return code
}

// mostWaiting bounds the requests that are remembered.
const mostWaiting = 4096

// Times are the times of requests that wait for their replies.
type Times struct {
	begun map[int]time.Time
	order []int
}

// Of is how long a reply took from the first byte of its request; 0: that is not known, or it is no
// reply.
func (d *Times) Of(m *capture.Decoded) time.Duration {
	switch {
	case m.Number == 0 || m.First.IsZero() || m.OneWay:
	case !m.Reply:
		if d.begun == nil {
			d.begun = map[int]time.Time{}
		}
		d.begun[m.Number] = m.First
		if d.order = append(d.order, m.Number); len(d.order) > mostWaiting {
			delete(d.begun, d.order[0])
			d.order = d.order[1:]
		}
	default:
		if at, ok := d.begun[m.Number]; ok {
			return max(m.Last.Sub(at), 1)
		}
	}
	return 0
}
