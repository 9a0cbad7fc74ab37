package wscontext

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/soap"
)

// identifier is the context that a request is about: the one it names itself, or in a header.
func (m *soapMessage) identifier() string {
	if uri, ok := m.fields[std("context-identifier")]; ok {
		return uri
	}
	return m.context
}

// expected is the version that the context must have; nil: any.
func (m *soapMessage) expected() (*uint64, error) {
	text, ok := m.fields[std("expect-version")]
	if !ok {
		return nil, nil
	}
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return nil, bad("expect-version %.40q is no number", text)
	}
	return &version, nil
}

// lifetime is the timeout of a request; 0: forever.
func (m *soapMessage) lifetime() (d time.Duration, given bool, err error) {
	text, given := m.fields[std("timeout")]
	if !given {
		return 0, false, nil
	}
	d, ok := parseSeconds(text)
	if !ok || d > MaxTimeout {
		return 0, true, &contextFault{
			fault: faultTimeout, uri: m.identifier(),
			reason: "a timeout is a number of seconds from 0, which is forever, to " + seconds(MaxTimeout),
		}
	}
	return d, true, nil
}

func newIdentifier() string { return "urn:uuid:" + uuid.NewString() }

func (s *ContextService) getContents(ctx context.Context, m *soapMessage) (*envelopeWriter, error) {
	uri := m.identifier()
	e, err := s.cfg.Store.Get(ctx, uri)
	if err != nil {
		return nil, err
	}
	w := newWriter(m.version, std("contents"), "expiresAt", instant(e.Expires))
	w.field(std("context-identifier"), uri)
	w.field(std("version"), strconv.FormatUint(e.Revision, 10))
	return w.contents(e.Value), nil
}

func (s *ContextService) setContents(ctx context.Context, m *soapMessage) (*envelopeWriter, error) {
	uri := m.identifier()
	if uri == "" {
		uri = newIdentifier()
	}
	expect, err := m.expected()
	if err != nil {
		return nil, err
	}
	timeout, given, err := m.lifetime()
	if err != nil {
		return nil, err
	}
	lock := s.of(uri)
	lock.RLock()
	defer lock.RUnlock()
	if a, err := s.activity(ctx, uri); err != nil {
		return nil, err
	} else if a.completed {
		return nil, &contextFault{fault: faultState, uri: uri, reason: "the activity of this context is completed"}
	}
	var version uint64
	if _, shape := ctxstore.ParseShapeURI(uri); given || shape {
		version, err = s.cfg.Store.Put(ctx, uri, m.contents, ctxstore.PutOptions{IfRevision: expect, TTL: timeout})
	} else {
		version, err = s.replace(ctx, uri, expect, m.contents)
	}
	if err != nil {
		return nil, err
	}
	w := newWriter(m.version, std("contentsSet")).field(std("context-identifier"), uri)
	return w.field(std("version"), strconv.FormatUint(version, 10)), nil
}

// replace sets the contents of a context, which stays alive as long as it was to.
func (s *ContextService) replace(ctx context.Context, uri string, expect *uint64, value []byte) (uint64, error) {
	if expect != nil {
		return s.cfg.Store.Commit(ctx, uri, *expect, value)
	}
	for {
		e, err := s.cfg.Store.Get(ctx, uri)
		if err != nil && !errors.Is(err, ctxstore.NotFound) {
			return 0, err
		}
		version, err := s.cfg.Store.Commit(ctx, uri, e.Revision, value)
		if !errors.Is(err, ctxstore.Conflict) {
			return version, err
		}
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
	}
}

func (s *ContextService) delete(ctx context.Context, m *soapMessage) (*envelopeWriter, error) {
	uri := m.identifier()
	expect, err := m.expected()
	if err != nil {
		return nil, err
	}
	lock := s.of(uri)
	lock.Lock()
	defer lock.Unlock()
	if err := s.cfg.Store.Delete(ctx, uri, expect); err != nil {
		return nil, err
	}
	if len(activityPrefix)+len(uri) <= ctxstore.MaxURI {
		if err := s.cfg.Store.Delete(ctx, activityPrefix+uri, nil); err != nil && !errors.Is(err, ctxstore.NotFound) {
			return nil, err
		}
	}
	return newWriter(m.version, own("deleted")), nil
}

// about says what clients need to know of the store.
func (s *ContextService) about(_ context.Context, m *soapMessage) (*envelopeWriter, error) {
	w := newWriter(m.version, own("store"))
	w.field(own("persistent"), strconv.FormatBool(ctxstore.Persists(s.cfg.Store)))
	return w.field(own("read-only"), strconv.FormatBool(s.cfg.ReadOnly)), nil
}

// list sends the list as it is read.
func (s *ContextService) list(w http.ResponseWriter, r *http.Request, m *soapMessage) {
	begun := false
	var out *envelopeWriter
	flush := func() bool {
		_, err := w.Write(out.buf)
		out.buf = out.buf[:0]
		return err == nil
	}
	for i, err := range s.cfg.Store.List(r.Context(), m.fields[own("prefix")]) {
		if err != nil && !begun {
			s.fault(w, m.version, err)
			return
		}
		if !begun {
			begun, out = true, s.beginList(w, m.version)
		}
		out.entry(i, err)
		if len(out.buf) > 32<<10 && !flush() {
			return
		}
	}
	if !begun {
		out = s.beginList(w, m.version)
	}
	out.end()
	flush()
}

func (s *ContextService) beginList(w http.ResponseWriter, v soap.Version) *envelopeWriter {
	contentType, _ := soap.ContentType(v, "") // fails for an action only
	w.Header().Set("Content-Type", contentType)
	return newWriter(v, own("listed"))
}

// entry adds an entry of a list, or one that cannot be read.
func (w *envelopeWriter) entry(i ctxstore.Info, err error) {
	n := qname(own("entry"))
	uri := i.URI
	w.raw("<", n)
	if err != nil {
		r, _ := refusalOf(err)
		uri = r.uri
		w.raw(` problem="`, escape(r.reason), `"`)
	} else {
		w.raw(` version="`, strconv.FormatUint(i.Revision, 10), `" size="`, strconv.FormatInt(i.Size, 10), `"`)
	}
	if !i.Expires.IsZero() {
		w.raw(` expiresAt="`, instant(i.Expires), `"`)
	}
	w.raw(">", escape(uri), "</", n, ">")
}

// watch answers once the entries with a prefix differ from those that the client knows, or after a
// while.
func (s *ContextService) watch(ctx context.Context, m *soapMessage) (*envelopeWriter, error) {
	select {
	case s.watches <- struct{}{}:
		defer func() { <-s.watches }()
	default:
		return nil, &contextFault{fault: faultGeneral, reason: "too many watches", code: ctxstore.Unavailable}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	prefix := m.fields[own("prefix")]
	changes, err := s.cfg.Store.Watch(ctx, prefix)
	if err != nil {
		return nil, err
	}
	known, err := digest(s.cfg.Store.List(ctx, prefix))
	if err != nil {
		return nil, err
	}
	if known == m.fields[own("known")] {
		timer := s.cfg.Clock.NewTimer(maxPoll)
		defer timer.Stop()
		select {
		case <-changes:
			known = "changed"
		case <-timer.C():
		case <-s.drained:
		case <-ctx.Done():
		}
	}
	w := newWriter(m.version, own("watched"))
	w.raw(known)
	return w, nil
}

// digest is a short name of a list: another one if an entry was added, changed or removed.
func digest(list func(func(ctxstore.Info, error) bool)) (string, error) {
	h := sha256.New()
	for i, err := range list {
		if err != nil {
			if i.URI == "" && !errors.Is(err, ctxstore.Corrupt) {
				return "", err
			}
			continue
		}
		_, _ = io.WriteString(h, i.URI+" "+strconv.FormatUint(i.Revision, 10)+"\n") // a hash takes everything
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
