// Package chosen is which messages of a capture are shown, by flags and a filter.
package chosen

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/facts"
	"github.com/hhfr/hhfr/internal/filter"
	"github.com/hhfr/hhfr/internal/xmltext"
	"github.com/hhfr/hhfr/internal/xpath"
)

// Choice is which messages are shown, and how much of them.
type Choice struct {
	// Head, Pretty, Tree, Hex and Bits: messages are shown: with their HTTP heads, indented, as
	// trees, as they were on the wire, as what each value cost there.
	Head, Pretty, Tree, Hex, Bits bool
	// Limit is after how many messages the list ends; 0: never.
	Limit int

	filter, operation, follow, session string
	match, since, until, time          string
	number                             int
	fault                              bool
	slower                             time.Duration

	expression *filter.Expression // nil: all
	xpath      *xpath.XPath       // nil: all
	zone       Zone
	span       period
	tooLong    int // messages in which the expression takes too long
}

// Flags declares the flags.
func (v *Choice) Flags(f *pflag.FlagSet) {
	f.IntVarP(&v.number, "number", "n", 0, "show the messages of this exchange, whole")
	f.StringVarP(&v.filter, "filter", "Y", "",
		"only messages for which this `EXPRESSION` holds: op == \"sum\" && bytes > 200 && !fault")
	f.StringVar(&v.match, "match", "",
		"only envelopes in which this `XPATH` holds: //order[@id='7'], count(//item) > 3")
	f.StringVar(&v.operation, "operation", "", "only messages of this `OPERATION`, and replies to it")
	f.StringVar(&v.session, "session", "", "only messages of the session whose `UUID` begins so; - is plain SOAP")
	f.BoolVar(&v.fault, "fault", false, "only SOAP faults")
	f.DurationVar(&v.slower, "slower", 0, "only replies that came so long after their requests")
	f.StringVar(&v.follow, "follow", "",
		"show one conversation, whole: a `CLIENT` as IP or IP:PORT, or the beginning of a session's UUID")
	f.StringVar(&v.since, "since", "",
		"only messages from this `TIME` on: 2026-01-02T15:04:05Z, 15:04:05, or 90s after the first message")
	f.StringVar(&v.until, "until", "", "only messages up to this `TIME`")
	f.StringVar(&v.time, "time", "utc", "times as utc, local, or relative: seconds since the first message")
	f.IntVar(&v.Limit, "limit", 0, "end after so many messages")
	f.BoolVar(&v.Head, "head", false, "show messages, with their HTTP heads")
	f.BoolVar(&v.Pretty, "pretty", false, "show messages, indented")
	f.BoolVarP(&v.Tree, "tree", "V", false, "show messages with what is known of them, envelopes as trees")
	f.BoolVarP(&v.Hex, "hex", "x", false, "show messages as they were on the wire, each field of a frame by its name")
	f.BoolVar(&v.Bits, "bits", false, "show how messages became their bytes: shapes, and what each value cost in bits")
}

// Whole reports whether messages themselves are shown.
func (v *Choice) Whole() bool {
	return v.number > 0 || v.follow != "" || v.Head || v.Pretty || v.Tree || v.Hex || v.Bits
}

// All reports whether nothing is left out.
func (v *Choice) All() bool {
	return v.expression == nil && v.xpath == nil && v.span.since == nil && v.span.until == nil
}

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
	if err := v.prepareSpan(); err != nil {
		return err
	}
	if v.match != "" {
		var err error
		if v.xpath, err = xpath.Compile(v.match); err != nil {
			return exit.Usagef("", "--match: %s: %v", v.match, err)
		}
	}
	v.expression = nil
	if v.filter != "" {
		var err error
		v.expression, err = filter.Parse(v.filter)
		var syntax *filter.SyntaxError
		if errors.As(err, &syntax) {
			return exit.Usage(fmt.Errorf("--filter: %w\n%s", err, syntax.Caret()), "")
		}
	}
	for _, one := range v.asked() {
		e, err := filter.Compare(one[0], one[1], one[2])
		if err != nil {
			return exit.Usage(err, "")
		}
		v.expression = v.expression.And(e)
	}
	return nil
}

// asked are the comparisons that flags stand for: fields, operators and values.
func (v *Choice) asked() (list [][3]string) {
	if v.number > 0 {
		list = append(list, [3]string{"number", "==", strconv.Itoa(v.number)})
	}
	if v.fault {
		list = append(list, [3]string{"fault", "!=", ""})
	}
	if v.slower > 0 {
		list = append(list, [3]string{"duration", ">=", v.slower.String()})
	}
	if v.operation != "" {
		list = append(list, [3]string{"call", "==", v.operation})
	}
	if v.session != "" {
		list = append(list, [3]string{"session", "~", "^" + regexp.QuoteMeta(v.session)})
	}
	if v.follow != "" {
		client := [3]string{"client", "==", v.follow}
		if _, err := filter.Compare(client[0], client[1], client[2]); err != nil {
			client = [3]string{"session", "~", "^" + regexp.QuoteMeta(v.follow)}
		}
		list = append(list, client)
	}
	return list
}

func (v *Choice) prepareSpan() (err error) {
	zone, ok := zones[cmp.Or(v.time, "utc")]
	if !ok {
		return exit.Usagef("", "--time is utc, local or relative, not %s", v.time)
	}
	v.zone = zone
	if v.span.since, err = parseMoment("--since", v.since); err != nil {
		return err
	}
	v.span.until, err = parseMoment("--until", v.until)
	return err
}

// Takes reports whether a message is shown.
func (v *Choice) Takes(m facts.Asked) bool {
	return v.span.takes(m.First, v.zone) && v.holds(m) && v.matches(m)
}

// holds reports whether the filters hold for a message.
func (v *Choice) holds(m facts.Asked) bool {
	if v.expression == nil {
		return true
	}
	as := m.Candidate()
	return v.expression.Holds(&as)
}

// maxMatched is the longest envelope in which --match searches, in bytes.
const maxMatched = 8 << 20

// matches reports whether the XPath holds in an envelope. It does not in what is no whole XML.
func (v *Choice) matches(m facts.Asked) bool {
	switch {
	case v.xpath == nil:
		return true
	case !m.Whole() || m.BodyOctets == 0:
		return false
	case m.BodyOctets > maxMatched:
		v.tooLong++
		return false
	}
	body := m.Body
	if int64(len(body)) < m.BodyOctets {
		var b bytes.Buffer
		if err := m.WriteBody(&b); err != nil {
			return false
		}
		body = b.Bytes()
	}
	holds, err := v.xpath.Holds(body)
	if errors.Is(err, xpath.ErrSteps) {
		v.tooLong++
	}
	return holds
}

// TooLong counts envelopes in which --match did not search, or not to the end.
func (v *Choice) TooLong() int { return v.tooLong }

// Bodies reports whether choosing needs whole envelopes.
func (v *Choice) Bodies() bool { return v.match != "" }
