// Package mocked is a server that answers for another one: its flags, and its services.
package mocked

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/description"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/flags"
	"github.com/hhfr/hhfr/internal/mock"
	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/internal/values"
	"github.com/hhfr/hhfr/internal/wsdl"
)

// MockOptions are the flags.
type MockOptions struct {
	WSDL          string // empty: there is no mock
	replies, fail string
	match         []string
	fetch         bool
	catalog       string
	seed          uint64
	latency       time.Duration
}

// Flags declares them.
func (o *MockOptions) Flags(f *pflag.FlagSet) {
	f.StringVar(&o.WSDL, "wsdl", "",
		"WSDL, a file or URL, whose operations are answered in place of the services above")
	f.StringVar(&o.replies, "replies", "", "replies for --wsdl, others are samples: a folder with OPERATION.xml or "+
		"OPERATION.json, or a capture or recording")
	f.StringArrayVar(&o.match, "match", nil, "PATH of a value that a request has in common with the one in the "+
		"capture of --replies whose reply it gets; may be given again")
	flags.Seed(f, &o.seed)
	f.DurationVar(&o.latency, "latency", 0, "how long each reply of --wsdl waits")
	f.StringVar(&o.fail, "fail", "", "share of the calls of --wsdl that a fault answers, such as 5%")
	description.ImportFlags(f, &o.fetch, &o.catalog)
}

// share reads --fail.
func (o *MockOptions) share() (float64, error) {
	if o.fail == "" {
		return 0, nil
	}
	percent, err := strconv.ParseFloat(strings.TrimSuffix(o.fail, "%"), 64)
	if err != nil || !(percent >= 0 && percent <= 100) || !strings.HasSuffix(o.fail, "%") {
		return 0, exit.Usagef("", "--fail is 0%% to 100%%, not %s", o.fail)
	}
	return percent / 100, nil
}

// Check returns why flags cannot stand together.
func (o *MockOptions) Check() error {
	if o.WSDL == "" && (o.match != nil || o.replies != "" || o.fail != "" || o.latency != 0 || o.seed != 0) {
		return exit.Usagef("", "--replies, --match, --seed, --latency and --fail go with --wsdl")
	}
	if o.latency < 0 {
		return exit.Usagef("", "--latency is 0 or more")
	}
	_, err := o.share()
	return err
}

// Services are the mock at the path of each port.
func (o *MockOptions) Services(ctx context.Context, g *command.Global) ([]peer.Service, error) {
	share, err := o.share()
	if err != nil {
		return nil, err
	}
	d, err := description.Load(ctx, o.WSDL, wsdl.SourceOptions{Fetch: o.fetch, Catalog: o.catalog, Texts: true})
	if err != nil {
		return nil, err
	}
	switch refused := description.Refused(d); {
	case refused == len(d.Operations):
		return nil, exit.Withf(exit.Malformed, "hhfr schema compile says what it describes, and why",
			"%s has no operations that can be answered", o.WSDL)
	case refused > 0:
		g.Warn("%s: %d of %d operations are not answered; hhfr schema compile says why", o.WSDL, refused,
			len(d.Operations))
	}
	cfg := mock.Config{Seed: o.seed, Match: o.match, Latency: o.latency, Fail: share, Log: g.Logger()}
	info, err := os.Stat(o.replies)
	switch {
	case o.replies == "":
	case err != nil:
		return nil, fmt.Errorf("--replies: %w", err)
	case info.IsDir():
		cfg.Replies = o.replies
	default:
		if cfg.Recorded, err = recorded(o.replies); err != nil {
			return nil, err
		}
	}
	if o.match != nil && cfg.Recorded == nil {
		return nil, exit.Usagef("", "--match goes with a capture as --replies")
	}
	m, err := mock.New(d, cfg)
	if err != nil {
		return nil, exit.Withf(exit.Malformed, "", "--replies %s: %w", o.replies, err)
	}
	var list []peer.Service
	for _, path := range paths(d) {
		list = append(list, peer.Service{
			Path: path, Handler: m, Example: example(d),
			WSDL:     func(location string) []byte { return text(d, location, 0) },
			Document: func(location string, n int) []byte { return text(d, location, n) },
		})
	}
	return list, nil
}

// text is a document of the description for the clients of a server at an origin, read at location.
func text(d *wsdl.ServiceDescription, location string, n int) []byte {
	service := func(of string) string {
		at, err := url.Parse(location)
		if err != nil {
			return of
		}
		at.Path = pathOf(of)
		return at.String()
	}
	return d.Text(n, service, func(n int) string {
		if n == 0 {
			return location + "?wsdl"
		}
		return fmt.Sprintf("%s?wsdl=%d", location, n)
	})
}

// paths are those of the ports, each once.
func paths(d *wsdl.ServiceDescription) (list []string) {
	met := map[string]bool{}
	for _, p := range d.Ports {
		if path := pathOf(p.Location); !met[path] {
			met[path] = true
			list = append(list, path)
		}
	}
	if list == nil {
		list = []string{"/"}
	}
	return list
}

func pathOf(location string) string {
	if u, err := url.Parse(location); err == nil && strings.HasPrefix(u.Path, "/") {
		return u.Path
	}
	return "/"
}

// example is a request of the first operation that has one; nil: none has.
func example(d *wsdl.ServiceDescription) []byte {
	for _, op := range d.Operations {
		if len(op.Problems) == 0 && op.Input != nil {
			if text, err := values.New(d.Set(), op.Input.Contents(), op.SOAP).Sample(0); err == nil {
				return text
			}
		}
	}
	return nil
}
