package contexts

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/contextservice"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/flags"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/listen"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/service"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/trust"
)

type contextServeOptions struct {
	contextOptions
	listen, admit string
	readOnly      bool
	maxPerPeer    int
	tls           trust.ServerTLS
}

func newContextServe(g *command.Global) *cobra.Command {
	var o contextServeOptions
	o.tls.Negotiate = "everybody" // there are no sessions
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve a store to others, as a WS-Context service",
		Long: `serve offers the entries of a store at the path /, in SOAP 1.1 and 1.2, by the operations of
WS-Context; ?wsdl describes them. Other commands use it with --store http://HOST:PORT/.

A store is as secret as the traffic. --admit says who may use the service: loopback, programs on this
machine; certificate, clients with a certificate that --client-ca vouches for; bearer:FILE, clients
that send one of the tokens in the file, one a line; or everybody.
Ctrl-C (exit code 130) or SIGTERM (0) ends it after what is in progress. SIGHUP does not: it reads
--cert, --key, --client-ca and the tokens of --admit again, for connections and requests from then on.`,
		Example: `  hhfr context serve --store ./store
  hhfr context serve --store bolt:store.db --listen 0.0.0.0:8443 --cert server.pem --key server.key ` +
			`--client-ca ca.pem --admit certificate`,
		Args: command.Takes(),
		RunE: func(c *cobra.Command, _ []string) error { return runContextServe(c.Context(), g, o) },
	}
	f := c.Flags()
	o.writtenFlags(f)
	listen.Flag(f, &o.listen, "127.0.0.1:8085")
	f.StringVar(&o.admit, "admit", "loopback", "who may use it: loopback, certificate, bearer:FILE or everybody")
	f.BoolVar(&o.readOnly, "read-only", false, "refuse to change anything")
	flags.MaxPerPeer(f, &o.maxPerPeer, contextservice.MaxConns/2, "")
	o.tls.CertificateFlags(f)
	command.OutputFlag(c, &o.output)
	return c
}

// ContextServing is the JSON of serve, once it listens.
type ContextServing struct {
	Version int    `json:"version"` // 1
	URL     string `json:"url"`     // of the store, for --store of others
}

func runContextServe(ctx context.Context, g *command.Global, o contextServeOptions) (err error) {
	if o.maxPerPeer < 1 {
		return exit.Usage(flags.ErrMaxPerPeer, "")
	}
	manager, err := service.New(g.Logger())
	if err != nil {
		return err
	}
	defer manager.Stopping()
	hangups := service.HearHangups()
	defer hangups.Stop()
	keys, err := trust.OpenKeyWriter(false)
	if err != nil {
		return err
	}
	defer func() { _ = keys.Close() }()
	who, err := trust.OpenAccess(trust.AccessFlags{TLS: &o.tls, Keys: keys, ContextFlag: "--admit", Contexts: o.admit})
	if err != nil {
		return err
	}
	hangups.Call(manager.Reloads(who.Reloads(g)))
	store, err := o.open(ctx, g, o.readOnly)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	service, err := trust.NewContextService(store, who, o.readOnly, g.Logger())
	if err != nil {
		return err
	}
	l, err := listen.At(ctx, "--listen", o.listen)
	if err != nil {
		return err
	}
	l = manager.Watched(l)
	url := o.tls.Scheme() + "://" + l.Addr().String() + "/"
	if o.output == "json" {
		err = g.JSON(ContextServing{1, url})
	} else {
		_, err = fmt.Fprintf(g.Out, "contexts  %s\n", url)
	}
	if err != nil {
		return errors.Join(err, l.Close())
	}
	return contextservice.Serve(ctx, g, l, o.maxPerPeer, who.Config(), service,
		func() error { return manager.Ready("contexts " + url) })
}
