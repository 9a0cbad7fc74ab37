package soapjms

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/go-amqp"
)

// Queues opens links to queues, concurrently.
type Queues interface {
	// Open opens one that receives from a queue, with so many messages at once that nobody has
	// settled; with an empty name from one of its own, that ends with it. only selects messages
	// whose correlation id begins so; empty: all.
	Open(ctx context.Context, queue string, credit int32, only string) (QueueLink, error)
}

// errNotNow reports that a broker gave a message back, as to a queue that is full, or not there.
var errNotNow = errors.New("the broker gives it back")

// QueueLink is a connection to a broker. Its methods may be called concurrently, but for Receive.
type QueueLink interface {
	// Receive waits for a message. An error is the end of the link.
	Receive(ctx context.Context) (*amqp.Message, error)
	// Accept has the broker forget a message, Reject put it with those that cannot be handled.
	Accept(ctx context.Context, m *amqp.Message) error
	Reject(ctx context.Context, m *amqp.Message, why string) error
	// Release has it come again, to this link or another; begun counts this time among those that
	// it was begun.
	Release(ctx context.Context, m *amqp.Message, begun bool) error
	// Send returns when the broker has the message for the queue that its properties name. It is
	// errNotNow where another attempt may help, and an [amqp.Error] where none does.
	Send(ctx context.Context, m *amqp.Message) error
	// Address is that of the queue it receives from.
	Address() string
	// Close ends it. Messages that are not settled are for others.
	Close() error
}

// Broker speaks AMQP 1.0.
type Broker struct {
	host, port     string
	user, password string
	secure         *tls.Config // nil: cleartext
	dial           func(ctx context.Context, network, addr string) (net.Conn, error)
}

// NewBroker is the one at a URL, amqp://HOST:PORT or amqps://, and the name of a queue behind it; the
// name of a user may be before the host, and password is theirs. secure is for amqps. dial opens
// connections; nil: as net does. Errors: BadAddress.
func NewBroker(text, password string, secure *tls.Config,
	dial func(ctx context.Context, network, addr string) (net.Conn, error)) (b *Broker, queue string, err error) {
	bad := func(why string) (*Broker, string, error) {
		return nil, "", &Error{Code: BadAddress, Err: errors.New(why)}
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme != "amqp" && u.Scheme != "amqps" {
		return bad(fmt.Sprintf("%s is no broker: amqp://HOST:PORT or amqps://HOST:PORT", redacted(text)))
	}
	if _, inURL := u.User.Password(); inURL {
		return bad(fmt.Sprintf("%q has a password, which others can see: name the user alone", u.Redacted()))
	}
	b = &Broker{host: u.Hostname(), port: cmp.Or(u.Port(), "5672"), user: u.User.Username(), password: password,
		dial: dial}
	if u.Scheme == "amqps" {
		b.secure = secure.Clone()
		b.secure.ServerName = b.host
		b.port = cmp.Or(u.Port(), "5671")
	}
	if b.dial == nil {
		b.dial = (&net.Dialer{}).DialContext
	}
	if len(u.Path) > 1 {
		queue = u.Path[1:]
	}
	return b, queue, nil
}

// redacted is a text as an error may show it.
func redacted(text string) string {
	if u, err := url.Parse(text); err == nil {
		return strconv.Quote(u.Redacted())
	}
	if strings.Contains(text, "@") { // it may have a password
		return "it"
	}
	return strconv.Quote(text)
}

// Named reports whether it is told who its client is.
func (b *Broker) Named() bool { return b.user != "" }

// String is the address of the broker.
func (b *Broker) String() string { return net.JoinHostPort(b.host, b.port) }

// openTime is how long a broker may take until there is a link.
const openTime = 20 * time.Second

// Open implements [Queues].
func (b *Broker) Open(ctx context.Context, queue string, credit int32, only string) (_ QueueLink, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, openTime, fmt.Errorf("no answer of AMQP 1.0 within %v", openTime))
	defer cancel()
	l := &amqpLink{}
	defer func() {
		if err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			err = &Error{Code: Unreachable, Err: fmt.Errorf("%s: %w", b, err)}
			_ = l.Close()
		}
	}()
	conn, err := b.dial(ctx, "tcp", b.String())
	if err != nil {
		return nil, err
	}
	if b.secure != nil {
		conn = tls.Client(conn, b.secure)
	}
	login := amqp.SASLTypeAnonymous()
	if b.user != "" {
		login = amqp.SASLTypePlain(b.user, b.password)
	}
	if l.conn, err = amqp.NewConn(ctx, conn, &amqp.ConnOptions{HostName: b.host, SASLType: login}); err != nil {
		_ = conn.Close()
		return nil, err
	}
	session, err := l.conn.NewSession(ctx, nil)
	if err != nil {
		return nil, err
	}
	// Without an address of its own it sends to where each message says.
	if l.sender, err = session.NewSender(ctx, "", nil); err != nil {
		return nil, err
	}
	// A limit here, too, would be none: go-amqp 1.7.0 takes that of the broker, which may be 0.
	o := &amqp.ReceiverOptions{Credit: credit, SourceCapabilities: []string{"queue"}}
	if queue == "" {
		o.DynamicAddress, o.SourceCapabilities = true, []string{"temporary-queue"}
	}
	if only != "" {
		o.Filters = []amqp.LinkFilter{amqp.NewSelectorFilter("JMSCorrelationID LIKE '" + only + "%'")}
	}
	if l.receiver, err = session.NewReceiver(ctx, queue, o); err != nil {
		return nil, err
	}
	return l, nil
}

type amqpLink struct {
	conn     *amqp.Conn
	sender   *amqp.Sender
	receiver *amqp.Receiver
}

// Receive implements [QueueLink].
func (l *amqpLink) Receive(ctx context.Context) (*amqp.Message, error) {
	return l.receiver.Receive(ctx, nil)
}

// Accept implements [QueueLink].
func (l *amqpLink) Accept(ctx context.Context, m *amqp.Message) error {
	return l.receiver.AcceptMessage(ctx, m)
}

// Reject implements [QueueLink].
func (l *amqpLink) Reject(ctx context.Context, m *amqp.Message, why string) error {
	return l.receiver.RejectMessage(ctx, m, &amqp.Error{Condition: amqp.ErrCondDecodeError, Description: why})
}

// Release implements [QueueLink].
func (l *amqpLink) Release(ctx context.Context, m *amqp.Message, begun bool) error {
	if begun {
		return l.receiver.ModifyMessage(ctx, m, &amqp.ModifyMessageOptions{DeliveryFailed: true})
	}
	return l.receiver.ReleaseMessage(ctx, m)
}

// Send implements [QueueLink].
func (l *amqpLink) Send(ctx context.Context, m *amqp.Message) error {
	receipt, err := l.sender.SendWithReceipt(ctx, m, nil)
	if err != nil {
		return err
	}
	state, err := receipt.Wait(ctx)
	if err != nil {
		return err
	}
	switch s := state.(type) {
	case *amqp.StateAccepted:
		return nil
	case *amqp.StateRejected:
		if s.Error != nil {
			return s.Error
		}
		return &amqp.Error{Condition: amqp.ErrCondNotAllowed, Description: "rejected"}
	}
	return errNotNow
}

// Address implements [QueueLink].
func (l *amqpLink) Address() string { return l.receiver.Address() }

// Close implements [QueueLink].
func (l *amqpLink) Close() error {
	if l.conn == nil {
		return nil
	}
	return l.conn.Close()
}

// Pauses between attempts to reach a broker: the first, and the longest.
const firstPause, longestPause = 100 * time.Millisecond, 30 * time.Second

// after is the next pause; half of it is random, so that not all come back at once.
func after(pause time.Duration) time.Duration { return min(2*pause, longestPause) }

// rest waits for a pause.
func rest(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause/2 + rand.N(pause/2+1))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
