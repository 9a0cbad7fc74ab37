package wscontext

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/soap"
)

// activity is what is noted about a context beside its contents. A context without a note is
// active.
type activity struct {
	kind, parent string
	completed    bool
	children     []string
	revision     uint64 // of the note; 0: there is none
}

// activity reads the note about a context.
func (s *ContextService) activity(ctx context.Context, uri string) (activity, error) {
	if len(activityPrefix)+len(uri) > ctxstore.MaxURI {
		return activity{}, nil
	}
	e, err := s.cfg.Store.Get(ctx, activityPrefix+uri)
	if errors.Is(err, ctxstore.NotFound) {
		return activity{}, nil
	} else if err != nil {
		return activity{}, err
	}
	root, err := soap.ParseElement(e.Value, soap.Limits{MaxBytes: ctxstore.MaxValue})
	if err != nil || root.Name != own("activity") {
		return activity{}, &ctxstore.Error{Code: ctxstore.Corrupt, URI: activityPrefix + uri, Err: err}
	}
	a := activity{
		kind: root.Attr("type"), parent: root.Attr("parent"), completed: root.Attr("status") == StatusCompleted,
		revision: e.Revision,
	}
	for _, c := range root.Children {
		a.children = append(a.children, c.Text)
	}
	return a, nil
}

// value is the note as it is stored.
func (a *activity) value() ([]byte, error) {
	e := soap.Element{Name: own("activity"), Attrs: []soap.Attr{{Name: "status", Value: a.status()}}}
	for _, at := range []soap.Attr{{Name: "type", Value: a.kind}, {Name: "parent", Value: a.parent}} {
		if at.Value != "" {
			e.Attrs = append(e.Attrs, at)
		}
	}
	for _, c := range a.children {
		e.Children = append(e.Children, soap.Element{Name: own("child"), Text: c})
	}
	return soap.BuildElement(&e)
}

func (a *activity) status() string {
	if a.completed {
		return StatusCompleted
	}
	return StatusActive
}

// change changes the note about a context that exists, which lives as long as the context.
func (s *ContextService) change(ctx context.Context, uri string, change func(*activity) error) error {
	if len(activityPrefix)+len(uri) > ctxstore.MaxURI {
		return &contextFault{fault: faultInvalid, uri: uri, reason: "the identifier is too long for an activity"}
	}
	for {
		e, err := s.cfg.Store.Get(ctx, uri)
		if err != nil {
			return err
		}
		a, err := s.activity(ctx, uri)
		if err != nil {
			return err
		}
		if err := change(&a); err != nil {
			return err
		}
		value, err := a.value()
		if err != nil {
			return err
		}
		ttl, alive := s.rest(e.Expires)
		if !alive {
			return unknown(uri)
		}
		_, err = s.cfg.Store.Put(ctx, activityPrefix+uri, value, ctxstore.PutOptions{IfRevision: &a.revision, TTL: ttl})
		if !errors.Is(err, ctxstore.Conflict) {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// rest is how long an entry will live, 0 for forever, and whether it still does.
func (s *ContextService) rest(expires time.Time) (ttl time.Duration, alive bool) {
	if expires.IsZero() {
		return 0, true
	}
	ttl = expires.Sub(s.cfg.Clock.Now())
	return ttl, ttl > 0
}

// begin creates a context; one with a parent is noted there, and lives no longer.
func (s *ContextService) begin(ctx context.Context, m *soapMessage) (*envelopeWriter, error) {
	timeout, given, err := m.lifetime()
	if err != nil {
		return nil, err
	}
	if !given {
		timeout = DefaultTimeout
	}
	a := activity{kind: m.fields[std("type")], parent: m.fields[std("parent")]}
	if a.parent == "" {
		a.parent = m.context
	}
	uri := newIdentifier()
	if a.parent != "" {
		if timeout, err = s.below(ctx, a.parent, timeout); err != nil {
			return nil, err
		}
	}
	if _, err = s.cfg.Store.Put(ctx, uri, m.contents,
		ctxstore.PutOptions{IfRevision: ctxstore.If(0), TTL: timeout}); err != nil {
		return nil, err
	}
	if err := s.register(ctx, uri, a); err != nil {
		_ = s.cfg.Store.Delete(ctx, uri, nil) // what stays expires
		_ = s.cfg.Store.Delete(ctx, activityPrefix+uri, nil)
		return nil, err
	}
	e, err := s.cfg.Store.Get(ctx, uri)
	if err != nil {
		return nil, err
	}
	w := newWriter(m.version, std("begun"))
	name := qname(std("context"))
	w.raw("<", name)
	if at := instant(e.Expires); at != "" {
		w.raw(` expiresAt="`, at, `"`)
	}
	w.raw(">")
	w.field(std("context-identifier"), uri)
	w.raw("</", name, ">")
	return w, nil
}

// below limits the lifetime of a child to that of its parent.
func (s *ContextService) below(ctx context.Context, parent string, timeout time.Duration) (time.Duration, error) {
	e, err := s.cfg.Store.Get(ctx, parent)
	rest, alive := s.rest(e.Expires)
	switch {
	case errors.Is(err, ctxstore.NotFound), errors.Is(err, ctxstore.Invalid), err == nil && !alive:
		return 0, &contextFault{fault: faultParent, uri: parent, reason: "there is no such parent"}
	case err != nil:
		return 0, err
	case rest > 0 && (timeout == 0 || rest < timeout):
		return rest, nil
	}
	return timeout, nil
}

// register notes a new activity, then its parent's child: so whoever completes the parent finds a
// child that is there.
func (s *ContextService) register(ctx context.Context, uri string, a activity) error {
	if a.kind != "" || a.parent != "" {
		err := s.change(ctx, uri, func(new *activity) error {
			new.kind, new.parent = a.kind, a.parent
			return nil
		})
		if err != nil {
			return err
		}
	}
	if a.parent == "" {
		return nil
	}
	return s.change(ctx, a.parent, func(p *activity) error {
		if p.completed {
			return &contextFault{fault: faultState, uri: a.parent, reason: "the parent is completed"}
		}
		if len(p.children) >= maxChildren {
			if err := s.dropCompleted(ctx, p); err != nil {
				return err
			}
		}
		if len(p.children) >= maxChildren {
			return &contextFault{fault: faultInvalid, uri: a.parent, reason: "the parent has too many children"}
		}
		p.children = append(p.children, uri)
		return nil
	})
}

// dropCompleted removes the children that are completed, or gone.
func (s *ContextService) dropCompleted(ctx context.Context, p *activity) error {
	var failed error
	p.children = slices.DeleteFunc(p.children, func(child string) bool {
		active, err := s.isActive(ctx, child)
		if err != nil {
			failed = err
		}
		return err == nil && !active
	})
	return failed
}

func (s *ContextService) isActive(ctx context.Context, uri string) (bool, error) {
	has, err := ctxstore.Has(ctx, s.cfg.Store, uri)
	if err != nil || !has {
		return false, err
	}
	a, err := s.activity(ctx, uri)
	return !a.completed, err
}

// complete ends an activity. Its contents can be read until they expire.
func (s *ContextService) complete(ctx context.Context, m *soapMessage) (*envelopeWriter, error) {
	uri := m.identifier()
	lock := s.of(uri)
	lock.Lock()
	defer lock.Unlock()
	err := s.change(ctx, uri, func(a *activity) error {
		if a.completed {
			return &contextFault{fault: faultState, uri: uri, reason: "the activity is completed already"}
		}
		if err := s.dropCompleted(ctx, a); err != nil {
			return err
		}
		if len(a.children) > 0 {
			return &contextFault{fault: faultChild, uri: a.children[0], reason: "this child is still active"}
		}
		a.completed = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	return newWriter(m.version, std("completed")), nil
}

func (s *ContextService) getStatus(ctx context.Context, m *soapMessage) (*envelopeWriter, error) {
	uri := m.identifier()
	has, err := ctxstore.Has(ctx, s.cfg.Store, uri)
	if err == nil && !has {
		err = unknown(uri)
	}
	if err != nil {
		return nil, err
	}
	a, err := s.activity(ctx, uri)
	if err != nil {
		return nil, err
	}
	w := newWriter(m.version, std("status"))
	w.raw(a.status())
	return w, nil
}

// setTimeout has a context, and what is noted of it, live so long from now on.
func (s *ContextService) setTimeout(ctx context.Context, m *soapMessage) (*envelopeWriter, error) {
	uri := m.identifier()
	timeout, given, err := m.lifetime()
	if err == nil && !given {
		err = bad("setTimeout has no timeout")
	}
	if err != nil {
		return nil, err
	}
	lock := s.of(uri)
	lock.Lock()
	defer lock.Unlock()
	a, err := s.activity(ctx, uri)
	if err == nil && a.completed {
		err = &contextFault{fault: faultState, uri: uri, reason: "the activity is completed"}
	}
	if err == nil && a.parent != "" {
		timeout, err = s.below(ctx, a.parent, timeout)
	}
	if err != nil {
		return nil, err
	}
	if err := s.prolong(ctx, uri, timeout); err != nil {
		return nil, err
	}
	if a.revision > 0 {
		if err := s.change(ctx, uri, func(*activity) error { return nil }); err != nil {
			return nil, err
		}
	}
	return newWriter(m.version, std("timeoutSet")), nil
}

func (s *ContextService) prolong(ctx context.Context, uri string, timeout time.Duration) error {
	for {
		e, err := s.cfg.Store.Get(ctx, uri)
		if err != nil {
			return err
		}
		_, err = s.cfg.Store.Put(ctx, uri, e.Value, ctxstore.PutOptions{IfRevision: &e.Revision, TTL: timeout})
		if !errors.Is(err, ctxstore.Conflict) {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

func (s *ContextService) getTimeout(ctx context.Context, m *soapMessage) (*envelopeWriter, error) {
	uri := m.identifier()
	e, err := s.cfg.Store.Get(ctx, uri)
	if err != nil {
		return nil, err
	}
	rest, alive := s.rest(e.Expires)
	if !alive {
		return nil, unknown(uri)
	}
	w := newWriter(m.version, std("timeout"))
	w.raw(seconds(rest))
	return w, nil
}
