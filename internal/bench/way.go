package bench

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// SessionWay is how a session's messages travel: with hhfr, by the mode in which its session is
// opened, or with plain SOAP, by connections. Queued messages do not wait for the reply to the one
// before.
type SessionWay string

// The ways. Those of hhfr are named after the mode in which a session is opened. SOAP and HTTPS are
// HTTP/1.1 without and with TLS 1.3; -new has a connection for each message, as in the papers,
// -kept one for all; resumed connections resume an earlier TLS session; -gzip compresses requests,
// and echo's replies.
const (
	Explicit        SessionWay = "explicit"
	ExplicitQueued  SessionWay = "explicit-queued"
	FirstCall       SessionWay = "first-call"
	FirstCallQueued SessionWay = "first-call-queued"
	FirstCallTLS    SessionWay = "first-call-tls"
	Met             SessionWay = "met"
	MetQueued       SessionWay = "met-queued"
	MetTLS          SessionWay = "met-tls"
	MetTLSQueued    SessionWay = "met-tls-queued"

	SOAPNew              SessionWay = "soap-new"
	SOAPKept             SessionWay = "soap-kept"
	SOAPNewGzip          SessionWay = "soap-new-gzip"
	SOAPKeptGzip         SessionWay = "soap-kept-gzip"
	H2CQueued            SessionWay = "h2c-queued"
	HTTPSNew             SessionWay = "https-new"
	HTTPSKept            SessionWay = "https-kept"
	HTTPSNewGzip         SessionWay = "https-new-gzip"
	HTTPSKeptGzip        SessionWay = "https-kept-gzip"
	HTTPSResumedNew      SessionWay = "https-resumed-new"
	HTTPSResumedKept     SessionWay = "https-resumed-kept"
	HTTPSResumedNewGzip  SessionWay = "https-resumed-new-gzip"
	HTTPSResumedKeptGzip SessionWay = "https-resumed-kept-gzip"
	H2Queued             SessionWay = "h2-queued"
	H2ResumedQueued      SessionWay = "h2-resumed-queued"
)

// UsualWays are those that hhfr stream uses, SOAP as in the papers, and what else makes SOAP fast.
var UsualWays = []SessionWay{FirstCall, FirstCallQueued, Met, MetQueued, SOAPNew, SOAPKept, SOAPKeptGzip, H2CQueued}

// secureWays are their likes in TLS.
var secureWays = []SessionWay{FirstCallTLS, MetTLS, MetTLSQueued, HTTPSNew, HTTPSKept, HTTPSKeptGzip, H2Queued}

// datagramWays are those where streams go over datagrams, which no first call asks for.
var datagramWays = []SessionWay{Explicit, ExplicitQueued, SOAPNew, SOAPKept, SOAPKeptGzip, H2CQueued}

// manner is the definition of a way.
type manner struct {
	// mode is how a session of hhfr is opened; none: plain SOAP.
	mode negotiate.Mode
	// tls encrypts; resumed connections resume the TLS session of an earlier connection.
	tls, resumed bool
	// http2 is the version of plain SOAP's HTTP, if not 1.1.
	http2 bool
	// kept is one connection for all messages.
	kept bool
	gzip bool
	// queued messages do not wait for the reply to the one before.
	queued bool
}

// modes are how sessions of hhfr are opened.
var modes = map[negotiate.Mode]struct {
	// rounds are the round trips before the first message, without those of TLS.
	rounds int
	// before is the mode of the session that the peers had before, if they met.
	before negotiate.Mode
}{
	negotiate.Explicit:  {rounds: 4}, // connection, offer, connection, hello
	negotiate.FirstCall: {rounds: 1}, // connection
	negotiate.Met:       {rounds: 1, before: negotiate.FirstCall},
}

// ways are all of them, in the order of reports.
var ways = []struct {
	name SessionWay
	manner
}{
	{Explicit, manner{mode: negotiate.Explicit, kept: true}},
	{ExplicitQueued, manner{mode: negotiate.Explicit, kept: true, queued: true}},
	{FirstCall, manner{mode: negotiate.FirstCall, kept: true}},
	{FirstCallQueued, manner{mode: negotiate.FirstCall, kept: true, queued: true}},
	{FirstCallTLS, manner{mode: negotiate.FirstCall, tls: true, kept: true}},
	{Met, manner{mode: negotiate.Met, kept: true}},
	{MetQueued, manner{mode: negotiate.Met, kept: true, queued: true}},
	{MetTLS, manner{mode: negotiate.Met, tls: true, resumed: true, kept: true}},
	{MetTLSQueued, manner{mode: negotiate.Met, tls: true, resumed: true, kept: true, queued: true}},
	{SOAPNew, manner{}},
	{SOAPKept, manner{kept: true}},
	{SOAPNewGzip, manner{gzip: true}},
	{SOAPKeptGzip, manner{kept: true, gzip: true}},
	{H2CQueued, manner{http2: true, kept: true, queued: true}},
	{HTTPSNew, manner{tls: true}},
	{HTTPSKept, manner{tls: true, kept: true}},
	{HTTPSNewGzip, manner{tls: true, gzip: true}},
	{HTTPSKeptGzip, manner{tls: true, kept: true, gzip: true}},
	{HTTPSResumedNew, manner{tls: true, resumed: true}},
	{HTTPSResumedKept, manner{tls: true, resumed: true, kept: true}},
	{HTTPSResumedNewGzip, manner{tls: true, resumed: true, gzip: true}},
	{HTTPSResumedKeptGzip, manner{tls: true, resumed: true, kept: true, gzip: true}},
	{H2Queued, manner{tls: true, http2: true, kept: true, queued: true}},
	{H2ResumedQueued, manner{tls: true, resumed: true, http2: true, kept: true, queued: true}},
}

// Ways are all of them, in the order of reports.
func Ways() []SessionWay {
	list := make([]SessionWay, len(ways))
	for i, w := range ways {
		list[i] = w.name
	}
	return list
}

// manner returns the definition of the way. Errors: ErrConfig.
func (w SessionWay) manner() (manner, error) {
	for _, known := range ways {
		if known.name == w {
			return known.manner, nil
		}
	}
	names := make([]string, len(ways))
	for i, known := range ways {
		names[i] = string(known.name)
	}
	return manner{}, fmt.Errorf("%w: no way %q, there are %s", ErrConfig, w, strings.Join(names, ", "))
}

// Secure reports whether messages travel in TLS.
func (w SessionWay) Secure() bool {
	m, err := w.manner()
	return err == nil && m.tls
}

// hhfr reports whether messages travel with hhfr.
func (m manner) hhfr() bool { return m.mode != "" }

// connect are the round trips of setting up a connection.
func (m manner) connect() int {
	if m.tls {
		return 2
	}
	return 1
}

// setup are the round trips before the first message of a session that has one connection.
func (m manner) setup() int {
	if m.hhfr() {
		return modes[m.mode].rounds + m.connect() - 1
	}
	return m.connect()
}

// alone is how many of n messages are sent each after the reply to the one before: of queued ones
// the first call, whose reply tells where the others go.
func (m manner) alone(n int) int {
	switch {
	case !m.queued:
		return n
	case m.mode == negotiate.FirstCall:
		return 1
	}
	return 0
}

// rounds are the round trips of a session of n messages.
func (m manner) rounds(n int) int {
	switch {
	case m.queued && n == m.alone(n):
		return m.setup() + n
	case m.queued:
		return m.setup() + m.alone(n) + 1
	case m.kept:
		return m.setup() + n
	}
	return (m.connect() + 1) * n
}

// met reports whether the peers had a connection before the session.
func (m manner) met() bool { return m.resumed || modes[m.mode].before != "" }

// first is the manner of that connection.
func (m manner) first() manner {
	m.mode, m.resumed, m.queued = modes[m.mode].before, false, false
	return m
}

// least is the minimum for any session of this manner: a connection and one round trip, the bytes
// before the first message, which wait for each other, and those after it in the busier direction.
func (m manner) least(p link.Profile, before, all directions) time.Duration {
	after := all.since(before)
	return time.Duration(m.connect()+1)*p.RTT + before.up.Busy + before.down.Busy + max(after.up.Busy, after.down.Busy)
}

// rival reports whether a session in manner m is compared with plain SOAP in manner o: also, as in
// the papers, one that does not wait for replies with plain SOAP that does.
func (m manner) rival(o manner) bool {
	return m.hhfr() && !o.hhfr() && m.tls == o.tls && m.resumed == o.resumed && (m.queued || !o.queued)
}

// ErrConfig says that there is no such experiment.
var ErrConfig = errors.New("no such experiment")
