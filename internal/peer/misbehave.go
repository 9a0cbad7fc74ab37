package peer

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
)

// Misbehavior is how a [Server] does wrong, for tests of the peer. The zero value: it does
// not.
type Misbehavior struct {
	kind  misbehavior
	slow  time.Duration
	count int // of exchanges, or a status
}

type misbehavior uint8

const (
	behaves misbehavior = iota
	noHHFR
	refuses
	faults
	slow
	garbage
	closesAfter
	noUpgrade
	drifts
)

var misbehaviors = []struct{ form, does string }{
	noHHFR:  {"no-hhfr", "knows nothing of hhfr: offers reach the service, and calls get plain replies"},
	refuses: {"refuse", "refuses every offer, and gives plain replies to calls that ask for a stream"},
	faults: {"fault",
		"answers offers with a fault, like a service without such an operation, and calls in plain SOAP"},
	slow:    {"slow=DURATION", "waits that long before each answer"},
	garbage: {"garbage", "answers offers with something that is not SOAP, and calls in plain SOAP"},
	closesAfter: {
		"close-after=N",
		"breaks all streams off when the exchange after N of them begins; 0: breaks each off at once",
	},
	drifts: {"drift=N", "changes the structure of replies after each N of them, whatever describes them"},
	noUpgrade: {
		"upgrade=STATUS",
		"answers requests that ask for an upgrade with this HTTP status; 0: closes their connections",
	},
}

// Misbehaviors lists the forms that [ParseMisbehavior] reads, with what each does.
func Misbehaviors() (forms, does []string) {
	for _, m := range misbehaviors[noHHFR:] {
		forms, does = append(forms, m.form), append(does, m.does)
	}
	return forms, does
}

// ParseMisbehavior reads one of the forms of [Misbehaviors]; empty is the zero value. Errors:
// BadConfig.
func ParseMisbehavior(s string) (m Misbehavior, err error) {
	name, value, given := strings.Cut(s, "=")
	for kind, k := range misbehaviors {
		form, _, takes := strings.Cut(k.form, "=")
		if form == name && takes == given {
			m.kind = misbehavior(kind)
		}
	}
	switch m.kind {
	case slow:
		m.slow, err = time.ParseDuration(value)
		if m.slow < 0 {
			err = fmt.Errorf("%v is below 0", m.slow)
		}
	case closesAfter:
		m.count, err = strconv.Atoi(value)
		if m.count < 0 {
			err = fmt.Errorf("%d is below 0", m.count)
		}
	case drifts:
		m.count, err = strconv.Atoi(value)
		if m.count < 1 {
			err = fmt.Errorf("%d is below 1", m.count)
		}
	case noUpgrade:
		m.count, err = strconv.Atoi(value)
		if m.count != 0 && (m.count < 200 || m.count > 599) {
			err = fmt.Errorf("%d is no status of an answer", m.count)
		}
	case behaves:
		if s != "" {
			forms, _ := Misbehaviors()
			err = fmt.Errorf("not one of %s", strings.Join(forms, ", "))
		}
	default: // takes no value
	}
	if err != nil {
		return Misbehavior{}, &Error{Code: BadConfig, Err: fmt.Errorf("misbehaviour %q: %w", s, err)}
	}
	return m, nil
}

// handler is what HTTP requests meet: behaved, which answers offers, or services alone.
func (m Misbehavior) handler(c clock.Clock, behaved, services http.Handler) http.Handler {
	switch m.kind {
	case noHHFR:
		return services
	case refuses:
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del(negotiate.Field)
			behaved.ServeHTTP(w, r)
		})
	case noUpgrade:
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Header.Get("Upgrade") == "":
				services.ServeHTTP(w, r)
			case m.count == 0:
				panic(http.ErrAbortHandler)
			default:
				w.WriteHeader(m.count)
			}
		})
	case faults, garbage:
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del(negotiate.Field)
			if r.Method != http.MethodPost || !offered(r) {
				behaved.ServeHTTP(w, r)
				return
			}
			m.answer(w)
		})
	case slow:
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if c.Sleep(r.Context(), m.slow) == nil {
				behaved.ServeHTTP(w, r)
			}
		})
	default: // what it does wrong is done elsewhere
		return behaved
	}
}

// answer is what comes instead of an answer.
func (m Misbehavior) answer(w http.ResponseWriter) {
	w.Header().Set("Content-Type", xmlType)
	if m.kind == garbage {
		_, _ = io.WriteString(w, "<soap:Envelope \x00\xff this is no SOAP")
		return
	}
	fault, err := soap.BuildFault(soap.V11, soap.Fault{Code: soap.Client, Reason: "no such operation"})
	if err != nil {
		fault = nil
	}
	w.WriteHeader(http.StatusInternalServerError)
	_, _ = w.Write(fault)
}

// maxPeek is how much of a request is looked at to see whether it is an offer, in bytes:
// docs/negotiation.md, section 2.
const maxPeek = 4 << 10

// offered reports whether a request is an offer. Its body can still be read from the start.
func offered(r *http.Request) bool {
	b := bufio.NewReaderSize(r.Body, maxPeek)
	body := r.Body
	r.Body = struct {
		io.Reader
		io.Closer
	}{b, body}
	for want := 1; want <= maxPeek; want = b.Buffered() + 1 {
		_, err := b.Peek(want)
		seen, _ := b.Peek(b.Buffered())
		if got := soap.Recognize(seen); got.Complete || err != nil {
			return got.Operation == negotiate.OfferName
		}
	}
	return false
}

// breaker breaks streams off.
type breaker struct {
	m     Misbehavior
	clock clock.Clock

	mu    sync.Mutex
	conns []net.Conn // of streams, since the last were broken off
	begun int
}

func newBreaker(m Misbehavior, c clock.Clock) *breaker {
	if c == nil {
		c = clock.Real()
	}
	return &breaker{m: m, clock: c}
}

// handler stands before services, for what comes by streams.
func (b *breaker) handler(next http.Handler) http.Handler {
	if b.m.kind != slow && b.m.kind != closesAfter {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// What a message of a sequence does is done; only its stream is broken off.
		if facts := responder.FactsOf(r.Context()); facts != nil && !b.hold(r.Context()) && facts.Sequence == "" {
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
	})
}

// hold is what happens to a request before it is served. It reports whether there is still a stream
// for the reply.
func (b *breaker) hold(ctx context.Context) bool {
	if b.m.kind == slow {
		return b.clock.Sleep(ctx, b.m.slow) == nil
	}
	return !b.breaks()
}

// breaks counts an exchange, and breaks all streams off behind the last one served.
func (b *breaker) breaks() bool {
	b.mu.Lock()
	b.begun++
	over := b.begun > b.m.count
	var conns []net.Conn
	if over {
		b.begun = 0
		conns, b.conns = b.conns, nil
	}
	b.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
	return over
}

// onSession stands before what is told of sessions; it may be nil.
func (b *breaker) onSession(next func(negotiate.Facts, net.Conn)) func(negotiate.Facts, net.Conn) {
	if b.m.kind != closesAfter {
		return next
	}
	return func(facts negotiate.Facts, conn net.Conn) {
		if next != nil {
			next(facts, conn)
		}
		if b.m.count == 0 {
			_ = conn.Close()
			return
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.conns = append(b.conns, conn)
	}
}
