package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/wsrm"
	"github.com/hhfr/hhfr/pkg/wsrm/soaprm"
)

// reliableInstead finds out whether --assurance holds over plain SOAP, with a service that refused
// hhfr: by WS-ReliableMessaging, if the policy in its description says so. err is why there is no
// session; the error that is returned says why there is no sequence either.
func (o *streamOptions) reliableInstead(ctx context.Context, r *reliableRun, err error) error {
	n := (*negotiate.Error)(nil)
	if !o.kept() || o.requireHHFR || !errors.As(err, &n) || n.Code != negotiate.NoHHFR || !n.Remote {
		return err
	}
	policy, from, why := o.policy(ctx, r)
	wanted := []string{"ExactlyOnce"}
	if o.assure() == wsrm.AtLeastOnce {
		wanted[0] = "AtLeastOnce"
	}
	if len(policy.Assurances) > 0 && o.assure() == wsrm.AtLeastOnce && policy.Lacks("ExactlyOnce") == "" {
		wanted = nil // which is both
	}
	if o.ordered {
		wanted = append(wanted, "InOrder")
	}
	switch {
	case why != nil:
	case policy.Version == "":
		why = fmt.Errorf("%s says nothing of WS-ReliableMessaging", from)
	case policy.Lacks(wanted...) != "":
		why = fmt.Errorf("the policy in %s does not promise %s", from, policy.Lacks(wanted...))
	case o.resume:
		why = errors.New("--resume goes with hhfr only")
	default:
		why = o.useReliable(ctx, r, policy)
	}
	if why == nil {
		return nil
	}
	hint := "--soap-rm 1.1 asks the service for a sequence all the same; --assurance at-most-once sends plain SOAP"
	if session.MayPass(err) {
		hint = exit.PassingHint
	}
	return exit.Withf(exit.NoPeer, hint, "%w; and no WS-ReliableMessaging: %w", err, why)
}

// goesOn goes on with the sequence of WS-ReliableMessaging that an earlier run with an assurance
// left in the store, whatever the service speaks by now: else its messages would stay there.
func (o *streamOptions) goesOn(ctx context.Context, r *reliableRun) (bool, error) {
	if !o.kept() || o.requireHHFR {
		return false, nil
	}
	v, err := soaprm.Unfinished(ctx, r.store, o.url)
	if v == "" || err != nil {
		return false, err
	}
	o.soapRM, o.ordered = string(v), false
	r.g.Note("the store has a sequence of WS-ReliableMessaging %s to the service: it goes on", v)
	return true, nil
}

// useReliable goes over to WS-ReliableMessaging.
func (o *streamOptions) useReliable(ctx context.Context, r *reliableRun, policy soaprm.PublishedPolicy) error {
	u, err := url.Parse(o.url)
	if err != nil {
		return err
	}
	left, err := session.HasSequence(ctx, r.store, u)
	if err != nil {
		return err
	}
	if left {
		return errors.New("the store has a sequence that began in a session of hhfr with the service")
	}
	before, ordered := o.soapRM, o.ordered
	o.soapRM, o.ordered = string(policy.Version), false // a source of WS-ReliableMessaging numbers all messages
	for name, space := range addressings {
		if space == policy.Addressing {
			o.addressing = name
		}
	}
	assurance := o.assurance
	o.assurance = wsrm.AtMostOnce.String()
	err = o.checkReliable()
	o.assurance = assurance
	if err != nil {
		o.soapRM, o.ordered, o.addressing = before, ordered, ""
		return err
	}
	r.g.Note("no hhfr; the service's policy says WS-ReliableMessaging %s: messages go in a sequence of that", o.soapRM)
	return nil
}

// policy reads what the description of the service says, which is at the URL with ?wsdl.
func (o *streamOptions) policy(ctx context.Context, r *reliableRun) (soaprm.PublishedPolicy, string, error) {
	var p soaprm.PublishedPolicy
	u, err := url.Parse(o.url)
	if err != nil {
		return p, "", err
	}
	u.RawQuery = strings.TrimPrefix(u.RawQuery+"&wsdl", "&")
	client := &http.Client{Transport: dialer{options: *o, secure: r.secure, recording: r.rec, network: r.over}.http()}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return p, "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return p, "", fmt.Errorf("no description: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return p, "", fmt.Errorf("no description at %s: status %d", u.Redacted(), response.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxDescription))
	if err == nil {
		p, err = soaprm.ReadPolicy(text)
	}
	if err != nil {
		return p, "", fmt.Errorf("the description at %s: %w", u.Redacted(), err)
	}
	return p, u.Redacted(), nil
}

// maxDescription is how much of a description is read, in bytes.
const maxDescription = 4 << 20
