package proxy

import (
	"context"
)

// routeTable is where requests go. It is replaced as a whole.
type routeTable struct {
	fronts    map[string]*front
	routes    map[string]*routes // by the names of fronts
	upstreams map[*Upstream]*upstream
}

// Reroute replaces the routes; on an error the present ones stay. Calls in progress end where they
// began; the next request of each connection goes by the new routes. Listeners that no route names
// any more accept nothing further; Config.Listen stays. A stream with an upstream to which no route
// leads ends with the last connection that uses it. Errors: BadConfig, Closed, those of
// Config.ListenTo.
func (p *Proxy) Reroute(ctx context.Context, all []Route) error {
	p.routed.Store(true)
	return p.reroute(ctx, all)
}

func (p *Proxy) reroute(ctx context.Context, all []Route) error {
	p.rerouting.Lock()
	defer p.rerouting.Unlock()
	if p.closed {
		return &Error{Code: Closed}
	}
	before := p.table.Load()
	next, err := p.newTable(ctx, before, all)
	if err != nil {
		return err
	}
	for key, u := range next.upstreams {
		if before.upstreams[key] == nil {
			u.begin()
		}
	}
	p.table.Store(next)
	for name, f := range next.fronts {
		f.now.Store(next.routes[name])
	}
	for name, f := range next.fronts {
		if before.fronts[name] == nil {
			f.begin()
		}
	}
	for name, f := range before.fronts {
		if next.fronts[name] == nil {
			f.now.Store(nil)
			f.end()
			f.use.retire()
		}
	}
	for key, u := range before.upstreams {
		if next.upstreams[key] == nil {
			u.use.retire()
		}
	}
	return nil
}

// newTable is the table of routes, with what the one before has of it.
func (p *Proxy) newTable(ctx context.Context, before *routeTable, all []Route) (_ *routeTable, err error) {
	t := &routeTable{
		fronts: map[string]*front{"": before.fronts[""]}, routes: map[string]*routes{"": {}},
		upstreams: map[*Upstream]*upstream{},
	}
	defer func() {
		if err != nil {
			t.discard(before)
		}
	}()
	for _, one := range all {
		to, err := p.takeUpstream(before, t, one.Upstream)
		if err != nil {
			return nil, err
		}
		if err := p.takeFront(ctx, before, t, one.Listen); err != nil {
			return nil, err
		}
		if !t.routes[one.Listen].add(one.Host, one.Path, to) {
			return nil, badConfig("two routes of listener %q for host %q and path %q", one.Listen, one.Host, one.Path)
		}
	}
	return t, nil
}

// takeUpstream puts an upstream into t: that of the table before, or a new one.
func (p *Proxy) takeUpstream(before, t *routeTable, key *Upstream) (u *upstream, err error) {
	if key == nil {
		return nil, badConfig("a route without an upstream")
	}
	if u = t.upstreams[key]; u != nil {
		return u, nil
	}
	if u = before.upstreams[key]; u == nil {
		if u, err = p.newUpstream(*key); err != nil {
			return nil, err
		}
	}
	t.upstreams[key] = u
	return u, nil
}

// takeFront puts a listener into t: that of the table before, or a new one.
func (p *Proxy) takeFront(ctx context.Context, before, t *routeTable, name string) error {
	if t.fronts[name] != nil {
		return nil
	}
	f := before.fronts[name]
	if f == nil {
		l, err := p.cfg.ListenTo(ctx, name)
		if err == nil {
			f, err = p.newFront(l, nil, p.contexts)
		}
		if err != nil {
			if l != nil {
				_ = l.Close()
			}
			return err
		}
	}
	t.fronts[name], t.routes[name] = f, &routes{}
	return nil
}

// discard ends what the table before does not have.
func (t *routeTable) discard(before *routeTable) {
	for name, f := range t.fronts {
		if before.fronts[name] == nil {
			f.discard()
		}
	}
	for key, u := range t.upstreams {
		if before.upstreams[key] == nil {
			u.use.retire()
		}
	}
}
