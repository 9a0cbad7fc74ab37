package reliable

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

// Instead finds out whether --assurance holds over plain SOAP, with a service that refused hhfr: by
// WS-ReliableMessaging, if the policy in its description says so. err is why there is no session;
// the error that is returned says why there is no sequence either.
func (r *ReliableRun) Instead(ctx context.Context, err error) error {
	o, n := r.Client, (*negotiate.Error)(nil)
	if !o.Kept() || o.RequireHHFR || !errors.As(err, &n) || n.Code != negotiate.NoHHFR || !n.Remote {
		return err
	}
	policy, from, why := r.policy(ctx)
	wanted := []string{"ExactlyOnce"}
	if o.Assure() == wsrm.AtLeastOnce {
		wanted[0] = "AtLeastOnce"
	}
	if len(policy.Assurances) > 0 && o.Assure() == wsrm.AtLeastOnce && policy.Lacks("ExactlyOnce") == "" {
		wanted = nil // which is both
	}
	if o.Ordered {
		wanted = append(wanted, "InOrder")
	}
	switch {
	case why != nil:
	case policy.Version == "":
		why = fmt.Errorf("%s says nothing of WS-ReliableMessaging", from)
	case policy.Lacks(wanted...) != "":
		why = fmt.Errorf("the policy in %s does not promise %s", from, policy.Lacks(wanted...))
	case o.Resume:
		why = errors.New("--resume goes with hhfr only")
	default:
		why = r.use(ctx, policy)
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

// GoesOn goes on with the sequence of WS-ReliableMessaging that an earlier run with an assurance
// left in the store, whatever the service speaks by now: else its messages would stay there.
func (r *ReliableRun) GoesOn(ctx context.Context) (bool, error) {
	if !r.Client.Kept() || r.Client.RequireHHFR {
		return false, nil
	}
	v, err := soaprm.Unfinished(ctx, r.Store, r.Client.URL)
	if v == "" || err != nil {
		return false, err
	}
	r.Reliable.Version = string(v)
	r.Note("the store has a sequence of WS-ReliableMessaging %s to the service: it goes on", v)
	return true, nil
}

// use goes over to WS-ReliableMessaging, whose source numbers all messages: they are in order.
func (r *ReliableRun) use(ctx context.Context, policy soaprm.PublishedPolicy) error {
	u, err := url.Parse(r.Client.URL)
	if err != nil {
		return err
	}
	left, err := session.HasSequence(ctx, r.Store, u)
	if err != nil {
		return err
	}
	if left {
		return errors.New("the store has a sequence that began in a session of hhfr with the service")
	}
	next, without := *r.Reliable, *r.Client
	next.Version = string(policy.Version)
	for name, space := range addressings {
		if space == policy.Addressing {
			next.addressing = name
		}
	}
	without.Assurance, without.Ordered = wsrm.AtMostOnce.String(), false
	if err := next.Check(&without); err != nil {
		return err
	}
	*r.Reliable = next
	r.Note("no hhfr; the service's policy says WS-ReliableMessaging %s: messages go in a sequence of that",
		next.Version)
	return nil
}

// policy reads what the description of the service says, which is at the URL with ?wsdl.
func (r *ReliableRun) policy(ctx context.Context) (soaprm.PublishedPolicy, string, error) {
	var p soaprm.PublishedPolicy
	u, err := url.Parse(r.Client.URL)
	if err != nil {
		return p, "", err
	}
	u.RawQuery = strings.TrimPrefix(u.RawQuery+"&wsdl", "&")
	client := r.HTTP()
	client.CheckRedirect = nil
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
