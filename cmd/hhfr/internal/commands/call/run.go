package call

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/values"
	"github.com/hhfr/hhfr/internal/wsdl"
)

// calledOperation is what is called: where, and how its messages are values.
type calledOperation struct {
	*wsdl.Operation
	url           *url.URL
	d             *wsdl.ServiceDescription
	input, output *values.Translator
}

func runCall(ctx context.Context, g *command.Global, o *callOptions, args []string) (err error) {
	password, err := o.Password()
	if err != nil {
		return err
	}
	if o.timeout < 0 {
		return exit.Usagef("", "--timeout is 0 or more")
	}
	if err := o.by.FastInfoset.Check(); err != nil {
		return err
	}
	expected, err := expectations(o.expects)
	if err != nil {
		return err
	}
	header, err := o.Header(o.fields, password)
	if err != nil {
		return err
	}
	secure, err := o.tls.Open(g.System, false)
	if err != nil {
		return err
	}
	defer secure.Close()
	op, err := o.operation(ctx, args, descriptionClient(args[0], secure.Config, header))
	if err != nil {
		return err
	}
	if err := o.by.CheckAddress(); err != nil {
		return err
	}
	if o.by.Queue.Address != nil && (len(header) > 0 || o.Digest || o.curl) {
		return exit.Usagef("--wss has a login in the message", "fields of HTTP do not pass a queue: --user, "+
			"--token-file, --digest, --header and --as-curl do not go with it")
	}
	calls, lines, err := inputs(ctx, g, args[2:])
	if err != nil {
		return err
	}
	blocks, err := headerBlocks(o.headerFiles)
	if err != nil {
		return err
	}
	p := &printer{g: g, o: o, op: op, lines: lines, expected: expected}
	var s *callSender
	if !o.curl {
		if s, err = o.open(ctx, g, op, secure.Config, header, password); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.close()) }()
	}
	made := 0
	for v, err := range calls {
		if err != nil {
			return err
		}
		made++
		text, err := op.input.Write(v, blocks+o.Security(password, time.Now()))
		if err != nil {
			return notSent(err, args, made)
		}
		if o.curl {
			if err := printCurl(g, o, op, header, text); err != nil {
				return err
			}
			continue
		}
		x, err := s.call(ctx, text)
		if err != nil {
			return err
		}
		x.request = v
		if err := p.exchange(x); err != nil {
			return err
		}
	}
	if made == 0 {
		return exit.Withf(exit.Malformed, inputHint, "stdin has no values")
	}
	return p.end()
}

// notSent is the error of values that do not fit, those of the nth call.
func notSent(err error, args []string, n int) error {
	what := "nothing was sent"
	if n > 1 {
		what = fmt.Sprintf("%s made before, and this one was not", printing.Count(n-1, "call"))
	}
	var misfits values.MisfitsError
	if errors.As(err, &misfits) {
		var all []error
		for _, m := range misfits {
			all = append(all, errors.New(m.String()))
		}
		err = errors.Join(all...)
	}
	return exit.With(exit.Malformed, err, fmt.Sprintf("%s; hhfr describe %s %s prints what is expected", what,
		printing.ShellWord(args[0]), args[1]))
}

// operation finds what is called.
func (o *callOptions) operation(ctx context.Context, args []string, client *http.Client) (*calledOperation, error) {
	file, name := args[0], args[1]
	d, err := o.load(ctx, file, name, client)
	if err != nil {
		return nil, err
	}
	found, err := o.find(d, file, name)
	if err != nil {
		return nil, err
	}
	op := &calledOperation{Operation: found, d: d}
	if found.Input == nil {
		return nil, exit.Withf(exit.Malformed, "", "%s takes no message: its service sends it", name)
	}
	if len(found.Input.Attached) > 0 {
		return nil, exit.Withf(exit.Malformed, "", "%s has parts outside its envelope (%s), which cannot be sent", name,
			strings.Join(found.Input.Attached, ", "))
	}
	op.input = values.New(d.Set(), found.Input.Contents(), found.SOAP)
	if found.Output != nil {
		op.output = values.New(d.Set(), found.Output.Contents(), found.SOAP)
	}
	flag, at := "--to", o.to
	if at == "" {
		if flag, at = "the address in "+file, d.LocationOf(found); at == "" {
			return nil, exit.Usagef("--to URL says it", "%s does not say where the service is", file)
		}
	}
	if at, err = o.by.Queue.Parse(at); err != nil {
		return nil, err
	}
	op.url, err = command.CheckURL(flag, at)
	return op, err
}

// expectation is a value that a reply has to have.
type expectation struct{ path, value string }

func expectations(list []string) (all []expectation, err error) {
	for _, text := range list {
		path, value, ok := cutKey(text)
		if !ok {
			return nil, exit.Usagef("", "--expect is PATH=VALUE, not %q", text)
		}
		all = append(all, expectation{path, value})
	}
	return all, nil
}

// check returns what is not as expected.
func (e expectation) check(v *values.JSON) error {
	found, err := v.At(e.path)
	switch {
	case err != nil:
		return fmt.Errorf("--expect %s=%s: %w", e.path, e.value, err)
	case found.Plain() != e.value:
		return fmt.Errorf("--expect %s=%s: it is %s", e.path, e.value, found.Plain())
	}
	return nil
}
