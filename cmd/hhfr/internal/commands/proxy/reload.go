package proxy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/cmdline"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/routes"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/trust"
	"github.com/hhfr/hhfr/internal/proxy"
)

// readRoutes reads the routes of the --config file, if there is one.
func (o *proxyOptions) readRoutes(c *cobra.Command) error {
	name := cmdline.ConfigName(c)
	if name == "" {
		return nil
	}
	file, err := cmdline.OpenConfig(c.Root(), name)
	if err == nil {
		err = o.Read(file, name, o.Listen)
	}
	return err
}

// proxyReload is what SIGHUP changes of a proxy: what the --config file says of routes, and what is
// in the files of certificates and tokens.
type proxyReload struct {
	*proxyOptions
	c      *cobra.Command
	g      *command.Global
	access *trust.Access
	proxy  *proxy.Proxy
	known  *routes.KnownUpstreams // that it has now
	routes []proxy.Route          // that it has now
}

// call returns what SIGHUP does; nil if there is nothing to read. On an error nothing changes.
func (r *proxyReload) call() func() {
	if cmdline.ConfigName(r.c) == "" && len(r.access.Current.Load().Files)+len(r.known.Files()) == 0 {
		return nil
	}
	return func() {
		if err := r.reload(); err != nil {
			trust.NotReloaded(r.g, err)
		}
	}
}

func (r *proxyReload) reload() error {
	name, next := cmdline.ConfigName(r.c), r.proxyOptions
	var later []string
	if name != "" {
		var err error
		if next, later, err = r.reread(r.c, name); err != nil {
			return err
		}
	}
	credentials, err := r.access.Read()
	if err != nil {
		return err
	}
	now, known, err := next.Open(r.known)
	if err != nil {
		return err
	}
	if !slices.Equal(now, r.routes) {
		if err := r.proxy.Reroute(r.c.Context(), now); err != nil {
			return err
		}
	}
	r.routes, r.known = now, known
	r.known.Use()
	r.access.Current.Store(credentials)
	if len(later) > 0 {
		r.g.Warn("%s: %s needs a restart", name, strings.Join(later, ", "))
	}
	if name != "" {
		r.g.Note("reloaded %s: %s", name, next.destinations())
	}
	trust.ReloadedFiles(r.g, append(slices.Clone(credentials.Files), known.Files()...))
	return nil
}

// destinations says where calls go.
func (o *proxyOptions) destinations() string {
	var all []string
	if rest := o.Rest(); rest != "" {
		all = append(all, "upstream "+rest)
	}
	if n := len(o.Others); n > 0 {
		all = append(all, printing.Count(n, "route"))
	}
	return strings.Join(all, ", ")
}

// reloaded are the flags that a reload changes; others need a restart.
var reloaded = func() []string {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(routes.UpstreamOptions).Flags(f)
	return cmdline.FlagNames(f)
}()

// reread returns the options as they would be if the proxy were started now: what the command line
// and the environment set stays. later are the flags that would differ and need a restart.
func (o *proxyOptions) reread(c *cobra.Command, name string) (next *proxyOptions, later []string, err error) {
	file, err := cmdline.OpenConfig(c.Root(), name)
	if err != nil {
		return nil, nil, err
	}
	next = &proxyOptions{}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	next.flags(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		was := c.Flags().Lookup(f.Name)
		if _, fromFile := was.Annotations[cmdline.InFile]; was.Changed && !fromFile {
			err = cmp.Or(err, copyFlag(flags, f, was))
			return
		}
		err = cmp.Or(err, file.Fill(flags, cmdline.SectionOf(c), f, name))
		if f.Value.String() != was.Value.String() && !slices.Contains(reloaded, f.Name) {
			later = append(later, f.Name)
		}
	})
	if err != nil {
		return nil, nil, err
	}
	if err = next.Read(file, name, o.Listen); err == nil {
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
