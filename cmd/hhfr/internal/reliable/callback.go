package reliable

import (
	"context"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/client"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/listen"
	"github.com/hhfr/hhfr/pkg/wsrm/soaprm"
)

// replyPlace is where replies of --soap-rm come that do not come on the connections of messages.
type replyPlace struct {
	callback, advertise string
	poll                time.Duration

	server *http.Server // of the callback, while it runs
}

func (p *replyPlace) flags(f *pflag.FlagSet) {
	f.StringVar(&p.callback, "callback", "",
		"take replies and acknowledgements of --soap-rm at this address, not on the connections of the messages")
	f.StringVar(&p.advertise, "advertise", "",
		"host that the service is told for --callback, if it is not that of the address")
	f.DurationVar(&p.poll, "poll", 0,
		"ask the service for replies and acknowledgements of --soap-rm 1.1 this often (WS-MakeConnection); 0: they "+
			"come on the connections of the messages")
}

// check refuses what does not go together.
func (p *replyPlace) check(version soaprm.Protocol, o *client.ClientOptions) error {
	switch {
	case p.callback == "" && p.advertise != "":
		return exit.Usagef("", "--advertise goes with --callback")
	case p.callback == "" && p.poll == 0:
		return nil
	case version == "":
		return exit.Usagef("", "--callback and --poll go with --soap-rm")
	case p.callback != "" && p.poll != 0:
		return exit.Usagef("", "replies come to --callback or by --poll, not both")
	case p.poll < 0:
		return exit.Usagef("", "--poll is 0 or more")
	case p.poll > 0 && version != soaprm.V11:
		return exit.Usagef("", "--poll goes with --soap-rm 1.1: 1.0 has no such thing")
	case p.callback == "":
		return nil
	case o.Link != "":
		return exit.Usagef("", "--callback does not go with --link, which is put before connections from here")
	case strings.HasPrefix(o.URL, "https:") && !o.AllowCleartext:
		return exit.Usagef("--allow-cleartext allows it; --poll, or neither, has them come in TLS",
			"--callback takes replies in cleartext, and the URL is https")
	}
	host, _, err := net.SplitHostPort(p.callback)
	if err != nil {
		return exit.Usagef("--callback takes HOST:PORT", "--callback %s: %w", p.callback, err)
	}
	if ip := net.ParseIP(host); p.advertise == "" && (host == "" || ip != nil && ip.IsUnspecified()) {
		return exit.Usagef("--advertise HOST names this machine as the service reaches it",
			"--callback %s is no address that the service can be told", p.callback)
	}
	return command.CheckHost("--advertise", p.advertise)
}

// open begins to take replies, and has a source expect them there.
func (p *replyPlace) open(ctx context.Context, r *ReliableRun, cfg *soaprm.SourceConfig) error {
	cfg.Poll = p.poll
	if p.callback == "" {
		return nil
	}
	l, err := listen.At(ctx, "--callback", p.callback)
	if err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(p.callback)
	if p.advertise != "" {
		host = p.advertise
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	cfg.Callback = soaprm.NewCallback("http://" + net.JoinHostPort(host, port))
	p.server = &http.Server{Handler: cfg.Callback, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 5 * time.Minute}
	go func() { _ = p.server.Serve(countedConns{l, r.OpenedClient}) }() // until it is closed
	r.Detail("replies are taken at http://%s", net.JoinHostPort(host, port))
	return nil
}

// close takes no more.
func (p *replyPlace) close() error {
	if p.server == nil {
		return nil
	}
	return p.server.Close()
}

// countedConns are connections that are recorded, and their bytes counted.
type countedConns struct {
	net.Listener
	c *client.OpenedClient
}

func (c countedConns) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	conn = c.c.Network.Plain.Count(conn)
	if wrap := c.c.Recording.Accepted(); wrap != nil {
		conn = wrap(conn)
	}
	return conn, nil
}
