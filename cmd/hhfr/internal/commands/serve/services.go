package serve

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/queues"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/server"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/trust"
	"github.com/hhfr/hhfr/internal/experiment"
	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/pkg/ctxstore/wscontext"
)

// services creates what serve offers: the mock of --wsdl, or the test services.
func (o *serveOptions) services(
	ctx context.Context, g *command.Global, ranges *peer.Ranges, s *server.OpenedServer,
) (*peer.Services, error) {
	list := o.own(ranges, s)
	if o.mock.WSDL != "" {
		var err error
		if list, err = o.mock.Services(ctx, g); err != nil {
			return nil, err
		}
	}
	if s.Contexts != nil {
		list = append(list, peer.Service{Path: server.ContextPath, Handler: s.Contexts, WSDL: wscontext.Description,
			Example: []byte(ContextExample)})
	}
	services, err := peer.NewServices(list...)
	if err != nil {
		return nil, err
	}
	return services.Telling(experiment.This), nil
}

// own are the test services; a new one is one line here.
func (o *serveOptions) own(ranges *peer.Ranges, s *server.OpenedServer) []peer.Service {
	return []peer.Service{
		peer.Echo(),
		peer.Concat(),
		peer.Sum(),
		peer.Records(),
		peer.GeoIP(ranges),
		peer.Blob(),
		peer.Ticker(nil, time.Second),
		peer.Ledger(s.Store),
	}
}

func (o *serveOptions) ranges() (*peer.Ranges, error) {
	if o.geoip == "" {
		return peer.DutchRanges(), nil
	}
	f, err := os.Open(o.geoip)
	if err != nil {
		return nil, fmt.Errorf("--geoip: %w", err)
	}
	defer f.Close()
	ranges, err := peer.ParseRanges(f)
	if err != nil {
		return nil, exit.Withf(exit.Malformed,
			"one range a line: ADDRESS/LENGTH, FIRST-LAST or ADDRESS; # begins a comment",
			"--geoip %s: %w", o.geoip, err)
	}
	return ranges, nil
}

// ContextExample lists the contexts.
const ContextExample = `<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"><soap:Body><list ` +
	`xmlns="urn:hhfr:context:1"><prefix>urn:hhfr:</prefix></list></soap:Body></soap:Envelope>`

// anyBody is for services that accept any body.
const anyBody = `<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"><soap:Body><hello ` +
	`xmlns="urn:example">world</hello></soap:Body></soap:Envelope>`

// ServiceLine is what serve -o json prints about a service.
type ServiceLine struct {
	URL  string `json:"url"`            // URL of the service
	Curl string `json:"curl"`           // a shell command that calls it
	WSDL string `json:"wsdl,omitempty"` // URL of its description
}

func lineOf(server *peer.Server, service peer.Service) ServiceLine {
	l := ServiceLine{URL: server.URL(service.Path)}
	body := anyBody
	if service.Example != nil {
		body = string(service.Example)
	}
	if service.WSDL != nil {
		l.WSDL = l.URL + "?wsdl"
	}
	l.Curl = fmt.Sprintf(
		`curl -s -H 'Content-Type: text/xml; charset=utf-8' -H 'SOAPAction: ""' --data-binary '%s' %s`,
		body,
		l.URL,
	)
	return l
}

// ServeReport is the JSON of serve, once it listens.
type ServeReport struct {
	Version   int                    `json:"version"`   // 1
	Addresses map[string]string      `json:"addresses"` // host and port, by what listens there
	Services  map[string]ServiceLine `json:"services"`  // by their names
	Store     string                 `json:"store"`     // the context store
}

// announce prints where the server listens, and how to call each service.
func announce(g *command.Global, o *serveOptions, at *peer.Server, s *server.OpenedServer,
	services *peer.Services) error {
	addrs := map[string]string{}
	for name, a := range at.Addrs() {
		addrs[name] = a.String()
	}
	lines := map[string]ServiceLine{}
	var text strings.Builder
	for _, path := range services.Paths() {
		name, l := strings.TrimPrefix(path, "/"), lineOf(at, services.At(path))
		lines[name] = l
		fmt.Fprintf(&text, "%-8s %s\n         %s\n", name, l.URL, l.Curl)
	}
	metrics := s.Seen.Announce(addrs)
	if o.Output == "json" {
		return g.JSON(ServeReport{1, addrs, lines, s.StoreName})
	}
	_, err := fmt.Fprintf(
		g.Out,
		"%sstreams  %s\n         hhfr stream %s FILE…\nstore    %s\n%s",
		&text,
		server.StreamsAt(addrs),
		at.URL(services.Paths()[0]),
		s.StoreName,
		metrics,
	)
	return err
}

// consume answers the requests of queues.
func (o *serveOptions) consume(ctx context.Context, g *command.Global, s *server.OpenedServer,
	running *peer.Server) (*queues.Consumers, error) {
	roots, err := trust.TermuxRoots(g.System)
	if err != nil {
		return nil, err
	}
	by := queues.Answering{Handler: running.Plain(),
		Shapes: queues.QueueShapes{Named: o.Store.Spec, Store: s.Store, Book: s.Book}}
	if o.exactlyOnce {
		by.Once = &queues.OnceServices{Transactional: running.Transactional, Within: peer.InTransaction}
	}
	return queues.Consume(ctx, g, o.queues, &tls.Config{RootCAs: roots}, by)
}
