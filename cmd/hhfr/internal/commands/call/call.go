// Package call is hhfr call, and hhfr list and describe, which say what can be called.
package call

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/description"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/login"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/plainsoap"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/stores"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/trust"
	"github.com/hhfr/hhfr/internal/wsdl"
)

// operationSource is where a description comes from.
type operationSource struct {
	fetch            bool
	catalog, binding string
}

func (o *operationSource) flags(f *pflag.FlagSet) {
	description.ImportFlags(f, &o.fetch, &o.catalog)
	description.BindingFlag(f, &o.binding)
}

// load compiles a description, with what client fetches; nil: one with the defaults of net/http. Of
// one operation alone, if it is named and there: a large WSDL takes a third less time then.
func (o *operationSource) load(
	ctx context.Context, file, operation string, client *http.Client,
) (*wsdl.ServiceDescription, error) {
	opt := wsdl.SourceOptions{Fetch: o.fetch, Catalog: o.catalog, Client: client, Operation: operation}
	d, err := description.Load(ctx, file, opt)
	if err == nil && operation != "" && len(d.Operations) == 0 { // the error names the others
		opt.Operation = ""
		d, err = description.Load(ctx, file, opt)
	}
	return d, err
}

type callOptions struct {
	operationSource
	login.Login
	to, output, extract          string
	fields, headerFiles, expects []string
	plain, full, curl            bool
	timeout                      time.Duration
	by                           plainsoap.PlainBinding
	store                        stores.StoreOptions
	tls                          trust.ClientTLS
}

// New is the command.
func New(g *command.Global) *cobra.Command {
	o := &callOptions{}
	c := &cobra.Command{
		Use:     "call FILE|URL OPERATION [KEY=VALUE…|JSON|@FILE|-]",
		Short:   "Call an operation of a WSDL with values, and print the values of the reply",
		Long:    callHelp,
		Example: callExamples,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return exit.Usagef("hhfr list FILE|URL has the operations", "FILE|URL and OPERATION are missing")
			}
			return nil
		},
		RunE:              func(c *cobra.Command, args []string) error { return runCall(c.Context(), g, o, args) },
		ValidArgsFunction: o.complete,
	}
	f := c.Flags()
	o.flags(f)
	f.StringVar(&o.to, "to", "",
		"URL of the service, or jms:queue:NAME?targetService=SERVICE; empty: the one that the WSDL names")
	o.by.Flags(f)
	f.StringArrayVar(&o.headerFiles, "soap-header", nil, "file with a SOAP header block; may be given again")
	o.CallFlags(f, &o.fields)
	f.BoolVar(&o.plain, "plain", false, "plain SOAP: no stream is asked for")
	f.DurationVar(&o.timeout, "timeout", time.Minute, "give up a call after this time; 0: never")
	f.BoolVar(&o.full, "full", false, "print the whole exchange as one object: URL, status, times, sizes, values")
	f.BoolVar(&o.curl, "as-curl", false, "print a shell command that makes the call with curl, and make none")
	f.StringArrayVar(&o.expects, "expect", nil,
		"PATH=VALUE that the reply has to have, else exit code 1; may be given again")
	f.StringVar(&o.extract, "extract", "", "print the value at this path alone, a string without quotes")
	command.FormatFlag(c, &o.output, "json", "xml", "values")
	o.store.WrittenFlags(f, stores.MemoryStore)
	o.tls.Flags(f)
	return c
}

const callHelp = `call makes the message of an operation from values, as its WSDL describes it, sends it to the
service, and prints the values of the reply. FILE is a WSDL 1.1, or a folder with one; URL is one of
http or https. The values come from arguments KEY=VALUE, from one JSON object, from a file with
one, or from stdin (-). Each object on stdin is a call, all in one session, and a line of JSON on
stdout.

  name=text       an element; text is taken as its type has it
  a/b=text        an element inside another one
  a/0/b=text      an item of what may repeat; giving a KEY again appends
  a/@b=text       an attribute
  name:=JSON      a value in JSON: a number, null for nil, an array, an object

docs/values.md says how messages are JSON. hhfr describe FILE|URL OPERATION prints the message as a
tree, and a sample of it in JSON. What does not fit is reported with its place, and what was
expected; then nothing is sent.

The stream is that of hhfr stream: asked for with the first call, and plain SOAP where the service
does not know it. --plain does not ask, and --fast-infoset does not either: it is for services that
speak Fast Infoset, as those of Apache CXF with that feature. A service at a queue (--to
jms:queue:NAME, --broker) is called as SOAP over JMS has it, without fields of HTTP; with --store, by
content of hhfr.

--user with --password-file sends HTTP Basic; --wss text or digest sends a UsernameToken of
WS-Security with a timestamp in its place. HHFR_PASSWORD is a password in place of the file.
--digest answers the challenge of HTTP Digest, and --token-file sends a bearer token.

Exit code 1: the reply is a fault or an HTTP error, or not as --expect says; 3: the service cannot
be reached; 4: the values, or the WSDL, are not as they have to be.`

const callExamples = `  hhfr call 'http://127.0.0.1:8080/sum?wsdl' sum item:='[1,2.5]'
  hhfr call 'http://127.0.0.1:8080/sum?wsdl' sum @request.json --expect result=3.5 -o values
  hhfr call 'http://127.0.0.1:8080/sum?wsdl' sum - --extract result < requests.jsonl
  hhfr call service.wsdl GetStatus id=17 --to http://far.example/status --user ann --password-file password
  hhfr call service.wsdl GetStatus id=17 --to jms:queue:orders --broker amqp://broker.example/`

// complete completes operations.
func (o *callOptions) complete(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return nil, cobra.ShellCompDirectiveDefault
	case 1:
		d, err := o.load(c.Context(), args[0], "", nil)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return operationNames(d), cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// operationNames are those that compile, each once.
func operationNames(d *wsdl.ServiceDescription) (names []string) {
	met := map[string]bool{}
	for _, op := range d.Operations {
		if len(op.Problems) == 0 && !met[op.Name] {
			met[op.Name] = true
			names = append(names, op.Name)
		}
	}
	return names
}

// bindings are those of operations, each once.
func bindings(list []*wsdl.Operation) (names []string) {
	for _, op := range list {
		if !slices.Contains(names, op.Binding.Local) {
			names = append(names, op.Binding.Local)
		}
	}
	return names
}

// find finds the operation that is meant.
func (o *operationSource) find(d *wsdl.ServiceDescription, file, name string) (*wsdl.Operation, error) {
	found := d.Named(name, o.binding)
	for _, op := range found {
		if len(op.Problems) == 0 {
			return op, nil
		}
	}
	where := file
	if o.binding != "" {
		where += ", binding or port " + o.binding + ","
	}
	if len(found) > 0 {
		return nil, exit.Withf(exit.Malformed, "hhfr schema compile has all that is wrong",
			"%s: %s cannot be called: %v", where, name, found[0].Problems[0])
	}
	hint := "hhfr list " + file + " has its operations"
	if elsewhere := bindings(d.Named(name, "")); len(elsewhere) > 0 {
		hint = "it is in " + strings.Join(elsewhere, ", ")
	} else if names := operationNames(d); len(names) == 0 {
		hint = "it describes no operations: hhfr schema compile " + file
	} else if i := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, name) }); i >= 0 {
		hint = "there is " + names[i]
	} else if len(names) <= 12 {
		hint = "there are " + strings.Join(names, ", ")
	}
	return nil, exit.Usagef(hint, "%s has no operation %s", where, name)
}
