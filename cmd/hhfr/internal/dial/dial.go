// Package dial has the configuration of a command's session, as its flags say.
package dial

import (
	"github.com/hhfr/hhfr/cmd/hhfr/internal/client"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/description"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/flags"
	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/sender"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Config is that of a session over what is open; book has the shapes of its messages.
func Config(g *command.Global, o *client.ClientOptions, c *client.OpenedClient) (
	cfg session.Config, book *binary.Book, err error) {
	book = binary.NewBook(ctxstore.Shapes{Store: c.Store})
	book.Log, book.Without = g.Logger(), uint64(o.Without)
	cfg = session.Config{
		HTTPClient: c.HTTP(), Transports: c.Network.Transports(c.Secure.Config),
		WrapConn: c.Network.Datagrams.Wrap(c.Recording.Dialed()), OnSession: c.Session,
		Store: c.Store, Common: c.Common, Archive: o.Common.Archive, Coders: coders.OfBook(book),
		AllowHost: o.AllowHost, AllowCleartext: o.AllowCleartext, RequireHHFR: o.RequireHHFR, ProbeTLS: true,
		Stream:    streamer.Config{SyncBytes: int64(o.Sync), FlushDelay: o.FlushDelay},
		Assurance: o.Assure(), Ordered: o.Ordered, Resume: o.Resume,
		Mode: negotiate.Mode(o.Mode), Nodes: o.Nodes,
		Reconnect: o.Reconnect, Timeout: o.Negotiate, RememberFor: o.Remember,
		OnAgreed: func(string, negotiate.Agreed) {}, // the command reports it itself
		Log:      g.Logger(),
	}
	cfg.HTTPClient.Transport = o.FastInfoset.Over(cfg.HTTPClient.Transport, g)
	if o.Remember == 0 {
		cfg.RememberFor = -1
	}
	if o.Plain || o.Transport == flags.PlainTransport {
		cfg.Transports = map[string]streamer.Transport{}
	}
	if o.Representation != "" {
		cfg.Representations = []string{o.Representation}
	}
	cfg.RequestSchema, cfg.Contract = c.Described.HHFR, c.Described.Contract
	if cfg.OfferFields, err = sender.ParseFields(o.Fields); err != nil {
		return cfg, nil, err
	}
	if cfg.Headers, err = flags.ReadHeaders(o.HeaderFiles); err != nil {
		return cfg, nil, err
	}
	cfg.ReplySchema, err = description.ReadSchema(o.ReplySchema)
	return cfg, book, err
}

// TellPlain warns if a session uses plain SOAP, and gives the remedy if one is known.
func TellPlain(g *command.Global, agreed negotiate.Agreed) {
	if agreed.HHFR {
		return
	}
	g.Note("plain SOAP: %s", agreed.Why)
	if agreed.NoStream != "" {
		g.Note("hint: %s", session.BlockedHint)
	}
}
