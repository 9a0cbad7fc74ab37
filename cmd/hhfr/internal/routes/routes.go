package routes

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/cmdline"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/proxy"
)

// RouteOptions are a section of a --config file for a route.
type RouteOptions struct {
	name         string
	line         int
	Listen, path string
	hosts        []string
	UpstreamOptions
}

// flags declares the keys of a route.
func (r *RouteOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&r.Listen, "listen", "", "")
	f.StringSliceVar(&r.hosts, "host", nil, "")
	f.StringVar(&r.path, "path", "", "")
	r.Flags(f)
}

// Keys are the keys of a route.
func Keys() []string {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(RouteOptions).flags(f)
	return cmdline.FlagNames(f)
}

// RoutingOptions are where a proxy sends its calls.
type RoutingOptions struct {
	UpstreamOptions                // of what no route takes
	Others          []RouteOptions // routes of the --config file
}

// Read returns them as a --config file has them, with these for --upstream.
func (o *RoutingOptions) Read(s cmdline.Settings, file, listen string) (err error) {
	o.Others, err = routesOf(s, file, listen, o.UpstreamOptions)
	return err
}

// routesOf returns the routes of a --config file, which was checked. What a route does not set is
// as in common, but for the URL; a listen that is that of --listen is the same as none.
func routesOf(s cmdline.Settings, file, listen string, common UpstreamOptions) (all []RouteOptions, err error) {
	at := map[string]int{}
	var flags []*pflag.FlagSet
	for _, one := range s {
		name, ok := cmdline.RouteName(one.Command)
		if !ok {
			continue
		}
		i, known := at[name]
		if !known {
			i = len(all)
			at[name] = i
			all = append(all, RouteOptions{name: name, line: one.Line, UpstreamOptions: common})
			all[i].URL = ""
			flags = append(flags, nil)
		}
		if one.Flag == "" && known {
			return nil, exit.Usagef("each route has a name of its own", "%s: route %q stands in line %d already",
				cmdline.Place(file, one.Line), name, all[i].line)
		}
	}
	for i := range all {
		flags[i] = pflag.NewFlagSet("", pflag.ContinueOnError)
		all[i].flags(flags[i])
	}
	for _, one := range s {
		name, ok := cmdline.RouteName(one.Command)
		if !ok || one.Flag == "" {
			continue
		}
		if err := flags[at[name]].Set(one.Flag, one.Value); err != nil {
			return nil, exit.Usage(cmdline.ValueError(cmdline.Place(file, one.Line)+", "+one.Flag, err), "")
		}
	}
	for i := range all {
		if err := all[i].complete(file); err != nil {
			return nil, err
		}
		if all[i].Listen == listen {
			all[i].Listen = ""
		}
	}
	return all, checkTwice(file, all)
}

// complete checks a route.
func (r *RouteOptions) complete(file string) error {
	for i, host := range r.hosts {
		r.hosts[i] = strings.ToLower(strings.TrimSpace(host))
	}
	_, err := r.Check()
	wrong, hint := err, ""
	switch _, _, bad := net.SplitHostPort(r.Listen); {
	case err != nil:
		_, hint = exit.Judge(err)
	case r.Listen != "" && bad != nil:
		wrong, hint = fmt.Errorf("listen %q is no address", r.Listen), "listen takes HOST:PORT"
	case r.path != "" && !strings.HasPrefix(r.path, "/"):
		wrong, hint = fmt.Errorf("path %q does not begin with /", r.path), "path = /"+r.path
	case slices.ContainsFunc(r.hosts, func(host string) bool { return host == "" || strings.ContainsAny(host, "/ *") }):
		wrong, hint = fmt.Errorf("host %q is no host", strings.Join(r.hosts, ",")),
			"host = NAME, or NAME:PORT; several with commas between them"
	default:
		return nil
	}
	text := strings.NewReplacer("--upstream", "upstream", "--client-", "client-").Replace(wrong.Error())
	return exit.Usagef(strings.ReplaceAll(hint, "hhfr proxy --upstream URL", "upstream = URL"), "%s, route %s: %s",
		cmdline.Place(file, r.line), r.name, text)
}

// checkTwice rejects routes of which one could never take a request, because another takes the
// same ones.
func checkTwice(file string, all []RouteOptions) error {
	type what struct{ listen, host, path string }
	first := map[what]*RouteOptions{}
	for i := range all {
		r := &all[i]
		for _, host := range r.anyHost() {
			same := what{r.Listen, host, strings.TrimSuffix(r.path, "/")}
			if other := first[same]; other != nil {
				return exit.Usagef("they differ in listen, host or path",
					"%s: route %s takes the same requests as route %s in line %d", cmdline.Place(file,
						r.line), r.name, other.name, other.line)
			}
			first[same] = r
		}
	}
	return nil
}

// anyHost are the hosts of a route; one that is empty stands for any.
func (r *RouteOptions) anyHost() []string {
	if len(r.hosts) == 0 {
		return []string{""}
	}
	return r.hosts
}

// Open returns the routes of a --config file, and that of --upstream, which takes what no other
// does; and the upstreams that they lead to, of those before and new ones.
func (o *RoutingOptions) Open(before *KnownUpstreams) (routes []proxy.Route, known *KnownUpstreams, err error) {
	now := *before
	now.known, known = map[string]*knownUpstream{}, &now
	for i := range o.Others {
		r := &o.Others[i]
		u, err := r.Check()
		if err != nil {
			return nil, nil, err
		}
		to, err := known.take(before, r.name, u, &r.UpstreamOptions)
		if err != nil {
			return nil, nil, err
		}
		for _, host := range r.anyHost() {
			routes = append(routes, proxy.Route{Listen: r.Listen, Host: host, Path: r.path, Upstream: to})
		}
	}
	if o.URL != "" && !o.routesTakeAll() {
		u, err := o.Check()
		if err != nil {
			return nil, nil, err
		}
		to, err := known.take(before, "", u, &o.UpstreamOptions)
		if err != nil {
			return nil, nil, err
		}
		routes = append(routes, proxy.Route{Upstream: to})
	}
	if len(routes) == 0 {
		return nil, nil, exit.Usagef("hhfr proxy --upstream URL, or routes in a --config file", "--upstream is missing")
	}
	return routes, known, nil
}

// routesTakeAll reports whether a route takes all that comes in at --listen, so that nothing is
// left for --upstream.
func (o *RoutingOptions) routesTakeAll() bool {
	return slices.ContainsFunc(o.Others, func(r RouteOptions) bool {
		return r.Listen == "" && slices.Contains(r.anyHost(), "") && strings.TrimSuffix(r.path, "/") == ""
	})
}

// Rest is the URL that gets what no route takes, without a password; empty: there is none.
func (o *RoutingOptions) Rest() string {
	if u, err := o.Check(); err == nil && !o.routesTakeAll() {
		return u.Redacted()
	}
	return ""
}

// RouteLine is a route as it is announced.
type RouteLine struct {
	Name     string   `json:"name"`             // in the file
	Listen   string   `json:"listen,omitempty"` // address at which its calls come, if it has one of its own
	Hosts    []string `json:"hosts,omitempty"`  // hosts that its calls name
	Path     string   `json:"path,omitempty"`   // beginning of the paths of its calls
	Upstream string   `json:"upstream"`         // URL that its calls go to, without a password
}

// Lines are the routes as they are announced; addrs are the addresses of listeners.
func (o *RoutingOptions) Lines(addrs map[string]string) []RouteLine {
	lines := []RouteLine{}
	for i := range o.Others {
		r := &o.Others[i]
		u, err := r.Check()
		if err != nil {
			continue // it would not have come here
		}
		lines = append(lines, RouteLine{
			Name: r.name, Listen: cmp.Or(addrs[r.Listen], r.Listen), Hosts: r.hosts, Path: r.path,
			Upstream: u.Redacted(),
		})
	}
	return lines
}

func (r RouteLine) String() string {
	text := strings.Join(r.Hosts, ",") + r.Path
	if r.Listen != "" {
		text += " at " + r.Listen
	}
	return fmt.Sprintf("%s: %s to %s", r.Name, cmp.Or(text, "everything"), r.Upstream)
}
