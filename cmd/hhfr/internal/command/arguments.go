package command

import (
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
)

// Takes checks the arguments of a command: one for each name, and any number more if the last name
// ends with "…".
func Takes(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		any := len(names) > 0 && strings.Contains(names[len(names)-1], "…")
		how := "usage: " + c.UseLine() + "; " + c.CommandPath() + " --help shows more"
		switch {
		case len(args) < len(names) && names[len(args)][0] != '[':
			return exit.Usagef(how, "no %s given", strings.TrimSuffix(names[len(args)], "…"))
		case len(names) == 0 && len(args) > 0:
			return exit.Usagef(how, "%s takes no arguments: %q", c.CommandPath(), args[0])
		case len(args) > len(names) && !any:
			return exit.Usagef(how, "%q is one argument too many", args[len(names)])
		}
		return nil
	}
}

// CheckURL checks that text is an http or https URL. name is the argument's or flag's name.
func CheckURL(name, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" {
		if port, err := strconv.Atoi(u.Port()); u.Port() != "" && (err != nil || port < 1 || port > 65535) {
			return nil, exit.Usagef("", "%s %q: there is no port %s", name, u.Redacted(), u.Port())
		}
		return u, nil
	}
	hint := name + " is http://HOST:PORT/PATH"
	scheme, rest := "http", text
	if err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		scheme, rest = u.Scheme, strings.TrimLeft(text[len(u.Scheme)+1:], "/")
	}
	bare, bad := url.Parse("http://" + rest)
	if bad == nil && bare.Hostname() != "" && !strings.Contains(rest, "://") && bare.Port()+bare.Path != "" {
		hint = scheme + "://" + rest + "?"
	}
	shown := text
	if err == nil {
		shown = u.Redacted()
	}
	return nil, exit.Usagef(hint, "%s %q is no http or https URL", name, shown)
}

// CheckHost checks that text, if not empty, can be the name or address of a host, without a port.
func CheckHost(flag, text string) error {
	if text == "" || net.ParseIP(text) != nil {
		return nil
	}
	if u, err := url.Parse("http://" + text); err == nil && u.Host == text && u.Port() == "" &&
		!strings.ContainsAny(text, "[]:") {
		return nil
	}
	return exit.Usagef("a name or an address, without a port", "%s %q is no host", flag, text)
}
