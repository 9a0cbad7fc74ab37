package wscontext

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"iter"
	"strconv"
	"sync"
	"time"

	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/internal/engine"
	"github.com/hhfr/hhfr/pkg/ctxstore/internal/lease"
	"github.com/hhfr/hhfr/pkg/soap"
)

// watchAgain is how long a watch waits before it asks a service again that failed.
const watchAgain = time.Second

// Remote implements [ctxstore.Store] by a context service.
type Remote struct {
	service    *ContextServiceHandler
	persistent bool
	leases     *lease.Leases

	access   *engine.Access
	watching sync.WaitGroup
}

var (
	_ ctxstore.Store  = (*Remote)(nil)
	_ ctxstore.Holder = (*Remote)(nil)
)

// RemoteConfig of a store.
type RemoteConfig struct {
	ClientConfig
	// ReadOnly refuses to change anything.
	ReadOnly bool
	// Clock is the clock of held entries; nil means the machine's.
	Clock clock.Clock
}

// Open returns the store of the service at an address, which must answer.
func Open(ctx context.Context, address string, cfg RemoteConfig) (*Remote, error) {
	service, err := NewContextServiceHandler(address, cfg.ClientConfig)
	if err != nil {
		return nil, err
	}
	m, err := service.call(ctx, own("about"), "", newWriter(service.cfg.SOAP, own("about")))
	if err != nil {
		_ = service.Close()
		return nil, err
	}
	r := &Remote{
		service: service, persistent: m.fields[own("persistent")] == "true", access: engine.NewAccess(service.url),
	}
	if cfg.ReadOnly || m.fields[own("read-only")] == "true" {
		r.access.Locked = "it can only be read"
	}
	r.leases = lease.New(r, cfg.Clock)
	return r, nil
}

// Get implements [ctxstore.Store].
func (r *Remote) Get(ctx context.Context, uri string) (ctxstore.Entry, error) {
	if err := r.access.Readable(ctx, uri); err != nil {
		return ctxstore.Entry{}, err
	}
	return r.service.get(ctx, uri)
}

// Has reports whether there is an entry; see [ctxstore.Has].
func (r *Remote) Has(ctx context.Context, uri string) (bool, error) {
	if err := r.access.Readable(ctx, uri); err != nil {
		return false, err
	}
	_, err := r.service.GetStatus(ctx, uri)
	if errors.Is(err, ctxstore.NotFound) {
		return false, nil
	}
	return err == nil, err
}

// Put implements [ctxstore.Store].
func (r *Remote) Put(ctx context.Context, uri string, value []byte, opt ctxstore.PutOptions) (uint64, error) {
	if err := ctxstore.CheckPut(uri, value, opt); err != nil {
		return 0, err
	}
	if err := r.access.Writable(ctx, uri); err != nil {
		return 0, err
	}
	return r.service.set(ctx, uri, value, opt.IfRevision, &opt.TTL)
}

// Commit implements [ctxstore.Store].
func (r *Remote) Commit(ctx context.Context, uri string, expect uint64, value []byte) (uint64, error) {
	if err := ctxstore.CheckCommit(uri, value); err != nil {
		return 0, err
	}
	if err := r.access.Writable(ctx, uri); err != nil {
		return 0, err
	}
	return r.service.set(ctx, uri, value, &expect, nil)
}

// Delete implements [ctxstore.Store].
func (r *Remote) Delete(ctx context.Context, uri string, ifRevision *uint64) error {
	if err := r.access.Writable(ctx, uri); err != nil {
		return err
	}
	w := newWriter(r.service.cfg.SOAP, own("delete")).field(std("context-identifier"), uri)
	if ifRevision != nil {
		w.field(std("expect-version"), strconv.FormatUint(*ifRevision, 10))
	}
	_, err := r.service.call(ctx, own("delete"), uri, w)
	return err
}

// List implements [ctxstore.Store]. The list is read as it is yielded.
func (r *Remote) List(ctx context.Context, prefix string) iter.Seq2[ctxstore.Info, error] {
	return func(yield func(ctxstore.Info, error) bool) {
		if err := r.access.Usable(ctx); err != nil {
			yield(ctxstore.Info{}, err)
			return
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		// A list may be long; only silence ends it.
		silence := time.AfterFunc(r.service.cfg.Timeout, func() { cancel(errSilent) })
		defer silence.Stop()
		w := newWriter(r.service.cfg.SOAP, own("list")).field(own("prefix"), prefix)
		resp, err := r.service.post(ctx, own("list"), "", w.end())
		if err != nil {
			yield(ctxstore.Info{}, err)
			return
		}
		defer resp.Body.Close()
		d := xml.NewDecoder(&alive{resp.Body, func() { silence.Reset(r.service.cfg.Timeout) }})
		for {
			info, err := r.nextEntry(d)
			if errors.Is(err, io.EOF) {
				return
			}
			if problem := (*ctxstore.Error)(nil); err != nil && !errors.As(err, &problem) {
				yield(ctxstore.Info{}, r.service.failed(ctx, "", err))
				return
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// alive calls read after each read.
type alive struct {
	io.Reader
	read func()
}

func (a *alive) Read(b []byte) (int, error) {
	defer a.read()
	return a.Reader.Read(b)
}

// entryElement is an entry of a list.
type entryElement struct {
	Version uint64 `xml:"version,attr"`
	Size    int64  `xml:"size,attr"`
	Expires string `xml:"expiresAt,attr"`
	Problem string `xml:"problem,attr"`
	URI     string `xml:",chardata"`
}

// nextEntry reads up to the next entry; io.EOF after the last one. A list that is cut is an error
// of the decoder.
func (r *Remote) nextEntry(d *xml.Decoder) (ctxstore.Info, error) {
	for {
		t, err := d.Token()
		if err != nil {
			return ctxstore.Info{}, err
		}
		start, ok := t.(xml.StartElement)
		if !ok || (soap.Name{Space: start.Name.Space, Local: start.Name.Local}) != own("entry") {
			continue
		}
		var e entryElement
		if err := d.DecodeElement(&e, &start); err != nil {
			return ctxstore.Info{}, err
		}
		if e.Problem != "" {
			return ctxstore.Info{}, &ctxstore.Error{Code: ctxstore.Corrupt, URI: e.URI, At: r.service.url,
				Err: errors.New(e.Problem)}
		}
		expires, err := parseInstant(e.Expires)
		return ctxstore.Info{URI: e.URI, Revision: e.Version, Size: e.Size, Expires: expires}, err
	}
}

// Watch implements [ctxstore.Store]. The service says when something changed, and the list what.
func (r *Remote) Watch(ctx context.Context, prefix string) (<-chan ctxstore.Change, error) {
	if err := r.access.Usable(ctx); err != nil {
		return nil, err
	}
	known, name, err := r.revisions(ctx, prefix)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	wake, out := make(chan struct{}), make(chan ctxstore.Change)
	close(wake) // looking waits by itself
	r.watching.Go(func() {
		defer cancel()
		defer context.AfterFunc(r.access.Open, cancel)()
		engine.Follow(ctx, known, wake, func(ctx context.Context) (now map[string]uint64, err error) {
			if err = r.waitForChange(ctx, prefix, name); err == nil {
				now, name, err = r.revisions(ctx, prefix)
			}
			if err != nil {
				timer := time.NewTimer(watchAgain)
				defer timer.Stop()
				select {
				case <-timer.C:
				case <-ctx.Done():
				}
			}
			return now, err
		}, out)
	})
	return out, nil
}

// waitForChange returns when a list no longer has this name, or after a while.
func (r *Remote) waitForChange(ctx context.Context, prefix, name string) error {
	w := newWriter(r.service.cfg.SOAP, own("watch")).field(own("prefix"), prefix).field(own("known"), name)
	_, err := r.service.call(ctx, own("watch"), "", w)
	return err
}

// revisions is a list with its name. Entries that cannot be read are left out.
func (r *Remote) revisions(ctx context.Context, prefix string) (map[string]uint64, string, error) {
	m := map[string]uint64{}
	name, err := digest(func(yield func(ctxstore.Info, error) bool) {
		for i, err := range r.List(ctx, prefix) {
			if err == nil {
				m[i.URI] = i.Revision
			}
			if !yield(i, err) {
				return
			}
		}
	})
	return m, name, err
}

// Close implements [ctxstore.Store].
func (r *Remote) Close() error {
	r.leases.Close()
	r.access.Shut()
	r.watching.Wait()
	return r.service.Close()
}

// Volatile reports whether the service forgets everything when it ends (see [ctxstore.Persists]).
func (r *Remote) Volatile() bool { return !r.persistent }

// Hold implements [ctxstore.Holder]. An entry whose holder died without releasing it is free after
// some seconds.
func (r *Remote) Hold(uri string) (release func(), err error) { return r.leases.Hold(uri) }
