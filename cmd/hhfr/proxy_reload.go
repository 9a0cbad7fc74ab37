package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/internal/proxy"
)

// readRoutes reads the routes of the --config file, if there is one.
func (o *proxyOptions) readRoutes(c *cobra.Command) error {
	name := configName(c)
	if name == "" {
		return nil
	}
	file, err := openConfig(c.Root(), name)
	if err == nil {
		o.others, err = file.readRoutes(name, o.upstreamOptions)
	}
	return err
}

// reloads returns what SIGHUP does: it reads the --config file again and replaces the routes; nil
// without such a file. On an error nothing changes.
func (o *proxyOptions) reloads(c *cobra.Command, g *global, p *proxy.Proxy, known *upstreams) func() {
	name := configName(c)
	if name == "" {
		return nil
	}
	return func() {
		next, later, err := o.reread(c, name)
		var routes []proxy.Route
		if err == nil {
			routes, err = next.routes(known)
		}
		if err == nil {
			err = p.Reroute(c.Context(), routes)
		}
		if err != nil {
			_, hint := codeOf(err)
			text := "not reloaded, the routes stay as they are: " + g.message(err)
			if hint != "" {
				text += "; " + hint
			}
			g.say("%s", text)
			return
		}
		if len(later) > 0 {
			g.warn("%s: %s needs a restart", name, strings.Join(later, ", "))
		}
		g.note("reloaded %s: %s", name, next.destinations())
	}
}

// destinations says where calls go.
func (o *proxyOptions) destinations() string {
	var all []string
	if o.upstream != "" {
		all = append(all, "upstream "+o.upstream)
	}
	if n := len(o.others); n > 0 {
		all = append(all, count(n, "route"))
	}
	return strings.Join(all, ", ")
}

// reloaded are the flags that a reload changes; others need a restart.
var reloaded = func() []string {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(upstreamOptions).flags(f)
	return flagNames(f)
}()

// reread returns the options as they would be if the proxy were started now: what the command line
// and the environment set stays. later are the flags that would differ and need a restart.
func (o *proxyOptions) reread(c *cobra.Command, name string) (next *proxyOptions, later []string, err error) {
	file, err := openConfig(c.Root(), name)
	if err != nil {
		return nil, nil, err
	}
	next = newProxyOptions()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	next.flags(flags, new(global))
	flags.VisitAll(func(f *pflag.Flag) {
		was := c.Flags().Lookup(f.Name)
		if _, fromFile := was.Annotations[inFile]; was.Changed && !fromFile {
			err = cmp.Or(err, copyFlag(flags, f, was))
			return
		}
		err = cmp.Or(err, file.fill(flags, sectionOf(c), f, name))
		if f.Value.String() != was.Value.String() && !slices.Contains(reloaded, f.Name) {
			later = append(later, f.Name)
		}
	})
	if err != nil {
		return nil, nil, err
	}
	if next.others, err = file.readRoutes(name, next.upstreamOptions); err == nil {
		err = next.check()
	}
	return next, later, err
}

// copyFlag gives a flag the value of another of its kind.
func copyFlag(flags *pflag.FlagSet, f, from *pflag.Flag) error {
	if list, ok := from.Value.(pflag.SliceValue); ok {
		return f.Value.(pflag.SliceValue).Replace(list.GetSlice())
	}
	if err := flags.Set(f.Name, from.Value.String()); err != nil {
		return fmt.Errorf("--%s: %w", f.Name, err)
	}
	return nil
}
