// Package queues has the services and the clients of a command at the queues of brokers.
package queues

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/stores"
	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/once"
	"github.com/hhfr/hhfr/internal/soapjms"
	"github.com/hhfr/hhfr/internal/solo"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// passwordVariable is the environment variable with the password of a broker's user.
const passwordVariable = "HHFR_BROKER_PASSWORD"

// dialFunc opens connections to brokers; nil: as net does.
type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// brokerOf is the broker of a flag, and the queue that its URL names.
func brokerOf(flag, text string, secure *tls.Config, dial dialFunc) (b *soapjms.Broker, queue string, err error) {
	password, given := os.LookupEnv(passwordVariable)
	if b, queue, err = soapjms.NewBroker(text, password, secure, dial); err != nil {
		return nil, "", exit.Usagef("", "%s: %w", flag, err)
	}
	if b.Named() && !given {
		return nil, "", exit.Usagef("set "+passwordVariable, "%s names a user without a password", flag)
	}
	return b, queue, nil
}

// QueueOptions are the flags of a client of queues.
type QueueOptions struct {
	// Address is where requests go; nil: to a URL of HTTP.
	Address *soapjms.Address
	// Paths: requests are for the services that their paths name, where the address names none.
	Paths  bool
	broker string
}

// Flag declares --broker.
func (o *QueueOptions) Flag(f *pflag.FlagSet) {
	f.StringVar(&o.broker, "broker", "", "broker of the queue that a jms: address names, amqp://[USER@]HOST:PORT or "+
		"amqps://, AMQP 1.0; the password of USER is in "+passwordVariable)
}

// Parse looks whether where a command sends to is a queue, and if so returns a URL in its place, as
// replies and errors have it.
func (o *QueueOptions) Parse(to string) (string, error) {
	if scheme, _, _ := strings.Cut(to, ":"); !strings.EqualFold(scheme, "jms") {
		if o.broker != "" {
			return "", exit.Usagef("jms:queue:NAME", "--broker goes with the address of a queue, not with %s", to)
		}
		return to, nil
	}
	a, err := soapjms.ParseAddress(to)
	if err != nil {
		return "", exit.Usage(err, "jms:queue:NAME?targetService=sum&timeToLive=60000")
	}
	if o.broker == "" {
		return "", exit.Usagef("--broker amqp://HOST:PORT", "%s does not say where its broker is", to)
	}
	if _, queue, err := brokerOf("--broker", o.broker, &tls.Config{}, nil); err != nil {
		return "", err
	} else if queue != "" {
		return "", exit.Usagef("jms:queue:"+queue, "--broker names no queue, the address does")
	}
	o.Address = &a
	at := url.URL{Scheme: "http", Host: "queue", Path: "/" + a.Queue}
	return at.String(), nil
}

// QueueShapes are those by which messages go as content, where other processes have them, too.
type QueueShapes struct {
	Named string // the name of the store that was given; empty: none was
	Store ctxstore.Store
	Book  *binary.Book
}

// ShapesOf has a book of its own for a store.
func ShapesOf(named string, store ctxstore.Store) QueueShapes {
	return QueueShapes{named, store, binary.NewBook(ctxstore.Shapes{Store: store})}
}

// content is nil without a store that others have.
func (s QueueShapes) content() soapjms.ContentForm {
	if s.Named == "" || s.Named == stores.MemoryStore {
		return nil
	}
	return queueForm{solo.New(s.Store, s.Book)}
}

// queueForm is content that comes again where the store fails that has its shapes.
type queueForm struct{ *solo.MessageCodec }

// Unpack implements [soapjms.ContentForm].
func (f queueForm) Unpack(packed []byte, most int) ([]byte, error) {
	message, err := f.MessageCodec.Unpack(packed, most)
	if errors.Is(err, &solo.Error{Code: solo.StoreFailed}) {
		err = fmt.Errorf("%w: %w", soapjms.ErrNotNow, err)
	}
	return message, err
}

// Client is of the queue of Address, over connections in TLS as secure says, that dial opens. The
// caller closes it.
func (o *QueueOptions) Client(g *command.Global, oneWay bool, secure *tls.Config, dial dialFunc, by QueueShapes) (
	*soapjms.Requester, error) {
	b, _, err := brokerOf("--broker", o.broker, secure, dial)
	if err != nil {
		return nil, err
	}
	return soapjms.NewRequester(soapjms.RequesterConfig{
		Queues: b, Address: *o.Address, OneWay: oneWay, Paths: o.Paths, Content: by.content(), Log: g.Logger(),
	}), nil
}

// TellSaved says what was sent as content.
func TellSaved(g *command.Global, s soapjms.Saved) {
	if s.Messages > 0 {
		g.Note("%s went as content of hhfr: %d bytes for %d", printing.Count(s.Messages, "request"), s.Content, s.XML)
	}
}

// concurrency is how many requests of a queue a server handles at once.
const concurrency = 64

// ServeFlag declares --queue of a command that takes requests from it.
func ServeFlag(f *pflag.FlagSet, to *[]string) {
	f.StringArrayVar(to, "queue", nil, "take the requests of this queue, SOAP over JMS: amqp://[USER@]HOST:PORT/NAME "+
		"or amqps://, AMQP 1.0; the password of USER is in "+passwordVariable+"; may be given again")
}

// Names are those of the queues at URLs, as far as these are right.
func Names(urls []string) (names []string) {
	for _, text := range urls {
		if u, err := url.Parse(text); err == nil && len(u.Path) > 1 {
			names = append(names, u.Path[1:])
		}
	}
	return names
}

// Consumers are of the queues of a server.
type Consumers struct {
	stop context.CancelFunc
	wait sync.WaitGroup
}

// Answering is what answers the requests of queues.
type Answering struct {
	Handler http.Handler
	// Service is that of requests that name none; empty: that of the name of the queue.
	Service string
	Shapes  QueueShapes
	// Once has each request handled once, as it says, by the store of Shapes; nil: at least once.
	Once *OnceServices
}

// OnceServices are services whose requests are handled once.
type OnceServices struct {
	// Transactional and Within are as in [once.OnceConfig].
	Transactional func(path string) bool
	Within        func(ctx context.Context, tx *wsrm.Tx, uri string) context.Context
}

// onceLife is how long a request is remembered after it was handled.
const onceLife = 7 * 24 * time.Hour

// filter is nil for at least once.
func (a *Answering) filter() soapjms.Once {
	if a.Once == nil {
		return nil
	}
	return once.New(once.OnceConfig{Store: a.Shapes.Store, Life: onceLife, Transactional: a.Once.Transactional,
		Within: a.Once.Within})
}

// CheckOnce checks --exactly-once of a server of queues with a store that is named.
func CheckOnce(is bool, urls []string, store string) error {
	if is && (len(urls) == 0 || store == "" || store == stores.MemoryStore) {
		return exit.Usagef("name one: --store bolt:FILE, or nats:// for several servers",
			"--exactly-once is for --queue, and needs a store that outlives the process")
	}
	return nil
}

// Consume opens queues, and has their requests answered until the result is closed.
func Consume(ctx context.Context, g *command.Global, urls []string, secure *tls.Config, by Answering) (
	*Consumers, error) {
	c := &Consumers{}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	for _, text := range urls {
		b, queue, err := brokerOf("--queue", text, secure, nil)
		if err == nil && queue == "" {
			err = exit.Usagef("amqp://HOST:PORT/NAME", "--queue %s names no queue", text)
		}
		if err != nil {
			return nil, c.fails(err)
		}
		consumers, err := soapjms.NewConsumers(ctx, soapjms.ConsumerConfig{
			Queues: b, Queue: queue, Service: cmp.Or(by.Service, queue), Handler: by.Handler,
			Concurrency: concurrency, Content: by.Shapes.content(), Once: by.filter(), Log: g.Logger(),
		})
		if ctx.Err() != nil {
			return nil, c.fails(context.Cause(ctx))
		}
		if err != nil {
			return nil, c.fails(exit.Withf(exit.NoPeer, "is there a broker that speaks AMQP 1.0?", "--queue: %w", err))
		}
		for _, one := range consumers {
			c.wait.Go(func() { one.Run(running) })
		}
	}
	return c, nil
}

func (c *Consumers) fails(err error) error {
	c.Close()
	return err
}

// Close ends what has begun, and takes no more.
func (c *Consumers) Close() {
	c.stop()
	c.wait.Wait()
}
