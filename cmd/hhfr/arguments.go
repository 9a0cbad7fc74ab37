package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// takes checks the arguments of a command: one for each name, and any number more if the last name
// ends with "…".
func takes(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		any := len(names) > 0 && strings.Contains(names[len(names)-1], "…")
		how := "usage: " + c.UseLine() + "; " + c.CommandPath() + " --help shows more"
		switch {
		case len(args) < len(names) && names[len(args)][0] != '[':
			return usage(errors.New("no "+strings.TrimSuffix(names[len(args)], "…")+" given"), how)
		case len(names) == 0 && len(args) > 0:
			return usage(fmt.Errorf("%s takes no arguments: %q", c.CommandPath(), args[0]), how)
		case len(args) > len(names) && !any:
			return usage(fmt.Errorf("%q is one argument too many", args[len(names)]), how)
		}
		return nil
	}
}

// checkURL checks that text is an http or https URL. name is the argument's or flag's name.
func checkURL(name, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" {
		if port, err := strconv.Atoi(u.Port()); u.Port() != "" && (err != nil || port < 1 || port > 65535) {
			return nil, usage(fmt.Errorf("%s %q: there is no port %s", name, u.Redacted(), u.Port()), "")
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
	return nil, usage(fmt.Errorf("%s %q is no http or https URL", name, shown), hint)
}

// checkHost checks that text, if not empty, can be the name or address of a host, without a port.
func checkHost(flag, text string) error {
	if text == "" || net.ParseIP(text) != nil {
		return nil
	}
	if u, err := url.Parse("http://" + text); err == nil && u.Host == text && u.Port() == "" &&
		!strings.ContainsAny(text, "[]:") {
		return nil
	}
	return usage(fmt.Errorf("%s %q is no host", flag, text), "a name or an address, without a port")
}
