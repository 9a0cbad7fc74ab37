package stream

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/description"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/flags"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/network"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/recording"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/trust"
	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/pcapng"
	"github.com/hhfr/hhfr/internal/sender"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// dialer is what a command that sends messages has opened for its session.
type dialer struct {
	options   streamOptions
	book      *binary.Book
	described description.DescribedMessages
	store     ctxstore.Store
	common    *unchanging.CommonStore
	secure    *trust.Secured
	recording *recording.TrafficRecording
	network   *network.Network
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
		Transports: d.network.Transports(d.secure.Config), WrapConn: d.network.Datagrams.Wrap(d.recording.Dialed()),
		Store: d.store, Common: d.common, Archive: o.common.Archive, Coders: coders.OfBook(book), Headers: o.headers,
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
	cfg.RequestSchema, cfg.Contract = d.described.HHFR, d.described.Contract
	if cfg.ReplySchema, err = description.ReadSchema(o.replySchema); err != nil {
		return nil, err
	}
	if cfg.RequestSchema == nil && o.representation != "xml" {
		cfg.Shapes = learnFiles(book, *o, d.described.Messages())
	}
	if o.listening != nil {
		cfg.Handler = o.listening.serve
	}
	if o.plain || o.transport == flags.PlainTransport {
		cfg.Transports = map[string]streamer.Transport{}
	}
	if o.representation != "" {
		cfg.Representations = []string{o.representation}
	}
	return session.Dial(ctx, o.url, cfg)
}

// tellPlain warns if a session uses plain SOAP, and gives the remedy if one is known.
func tellPlain(g *command.Global, agreed negotiate.Agreed) {
	if agreed.HHFR {
		return
	}
	g.Note("plain SOAP: %s", agreed.Why)
	if agreed.NoStream != "" {
		g.Note("hint: %s", session.BlockedHint)
	}
}

// session notes a session's facts in the recording, and which part of an HTTP connection is its
// stream.
func (d dialer) session(f negotiate.Facts, c net.Conn) {
	d.recording.Facts(f, c)
	d.network.Plain.Leave(c)
}

// http is the transport of negotiation and plain SOAP.
func (d dialer) http() *http.Transport {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = d.options.concurrency
	transport.DisableCompression = true
	transport.IdleConnTimeout = 5 * time.Second
	dialTCP := d.network.DialContext((&net.Dialer{}).DialContext)
	open := func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dialTCP(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return d.network.Plain.Count(c), nil
	}
	transport.TLSClientConfig = d.secure.Config // for servers behind a proxy from the environment
	transport.DialContext = d.recording.Over(open)
	transport.DialTLSContext = d.dialTLS(open)
	return transport
}

// dialTLS returns a dial function of TLS inside the connections of another. A recording has the
// cleartext. If the server turns a connection into a stream, the recording has it like every
// stream.
func (d dialer) dialTLS(open pcapng.DialFunc) pcapng.DialFunc {
	secure := d.secure.Over(open)
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := secure(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if c.ConnectionState().NegotiatedProtocol == negotiate.Protocol {
			d.network.Plain.Drop(c.NetConn())
			return c, nil
		}
		return d.recording.Dial(c), nil
	}
}

// tellHeaders says why unchanging headers still travel with each message.
func tellHeaders(g *command.Global, sess *session.Session, messages int) {
	a := sess.Agreed()
	for _, d := range a.Refused {
		if d.Item == "UnchangingHeader" {
			g.Warn("unchanging headers travel with each message: refused: %s", d.Why)
		}
	}
	if a.HHFR && len(a.Facts.Headers) > 0 && messages > 0 && sess.HeadersTaken() == 0 {
		g.Warn("no message has one of the unchanging headers byte for byte: all traveled as they are")
	}
}
