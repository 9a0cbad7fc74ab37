package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/hhfr/hhfr/internal/session"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/pcapng"
	"github.com/hhfr/hhfr/internal/sender"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// dialer is what a command that sends messages has opened for its session.
type dialer struct {
	options   streamOptions
	book      *binary.Book
	described description
	store     ctxstore.Store
	common    *unchanging.CommonStore
	secure    *secured
	recording *recording
	network   *network
	log       *slog.Logger
	late      func(number uint64, reply *streamer.Message, err error) // nil: replies to an earlier run are not wanted
}

// dial opens the session; all connections are recorded and their bytes counted.
func (d dialer) dial(ctx context.Context) (*session.Session, error) {
	o := &d.options
	book := d.book
	book.Log, book.Without = d.log, uint64(o.without)
	cfg := session.Config{
		HTTPClient: &http.Client{
			Transport:     d.http(),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		Transports: d.network.transports(d.secure.config), WrapConn: d.network.datagrams.wrap(d.recording.dialed()),
		Store: d.store, Common: d.common, Archive: o.common.archive, Coders: coders.OfBook(book), Headers: o.headers,
		AllowHost: o.allowHost, AllowCleartext: o.allowCleartext, RequireHHFR: o.requireHHFR, ProbeTLS: true,
		OnSession: d.session, Stream: streamer.Config{SyncBytes: int64(o.sync), FlushDelay: o.flushDelay}, Log: d.log,
		Assurance: o.assure(), Ordered: o.ordered, Resume: o.resume, LateReply: d.late,
		Mode: negotiate.Mode(o.mode), Nodes: o.nodes,
		Reconnect: o.reconnect, Timeout: o.negotiateTimeout, RememberFor: o.remember,
	}
	if o.remember == 0 {
		cfg.RememberFor = -1
	}
	var err error
	cfg.OnAgreed = func(string, negotiate.Agreed) {} // the command reports it itself
	if cfg.OfferFields, err = sender.ParseFields(o.fields); err != nil {
		return nil, err
	}
	cfg.RequestSchema, cfg.Contract = d.described.hhfr, d.described.contract
	if cfg.ReplySchema, err = readSchema(o.replySchema); err != nil {
		return nil, err
	}
	if cfg.RequestSchema == nil && o.representation != "xml" {
		cfg.Shapes = learnFiles(book, *o, d.described.messages())
	}
	if o.listening != nil {
		cfg.Handler = o.listening.serve
	}
	if o.plain || o.transport == plainTransport {
		cfg.Transports = map[string]streamer.Transport{}
	}
	if o.representation != "" {
		cfg.Representations = []string{o.representation}
	}
	return session.Dial(ctx, o.url, cfg)
}

// fieldsFlag declares -H for commands that make offers.
func fieldsFlag(f *pflag.FlagSet, fields *[]string, goesWith string) {
	f.StringArrayVarP(fields, "header", "H", nil,
		"a further HTTP field, Name: value, with "+goesWith+"; may be given again")
}

// checkFields returns why fields of -H cannot be sent; nil if they can.
func checkFields(fields []string) error {
	if _, err := sender.ParseFields(fields); err != nil {
		return usage(fmt.Errorf("--header: %w", err), "")
	}
	return nil
}

// tellPlain warns if a session uses plain SOAP, and gives the remedy if one is known.
func tellPlain(g *global, agreed negotiate.Agreed) {
	if agreed.HHFR {
		return
	}
	g.note("plain SOAP: %s", agreed.Why)
	if agreed.NoStream != "" {
		g.note("hint: %s", session.BlockedHint)
	}
}

// session notes a session's facts in the recording, and which part of an HTTP connection is its
// stream.
func (d dialer) session(f negotiate.Facts, c net.Conn) {
	d.recording.facts(f, c)
	d.network.plain.leave(c)
}

// http is the transport of negotiation and plain SOAP.
func (d dialer) http() *http.Transport {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = d.options.concurrency
	transport.DisableCompression = true
	transport.IdleConnTimeout = 5 * time.Second
	dialTCP := d.network.dialContext((&net.Dialer{}).DialContext)
	open := func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dialTCP(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return d.network.plain.count(c), nil
	}
	transport.TLSClientConfig = d.secure.config // for servers behind a proxy from the environment
	transport.DialContext = d.recording.over(open)
	transport.DialTLSContext = d.dialTLS(open)
	return transport
}

// dialTLS returns a dial function of TLS inside the connections of another. A recording has the
// cleartext. If the server turns a connection into a stream, the recording has it like every
// stream.
func (d dialer) dialTLS(open pcapng.DialFunc) pcapng.DialFunc {
	secure := d.secure.over(open)
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := secure(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if c.ConnectionState().NegotiatedProtocol == negotiate.Protocol {
			d.network.plain.drop(c.NetConn())
			return c, nil
		}
		return d.recording.dial(c), nil
	}
}
