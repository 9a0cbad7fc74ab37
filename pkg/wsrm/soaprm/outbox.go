package soaprm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/soap"
)

// letter is a message for who does not wait for it on a connection.
type letter struct {
	to, action  string
	version     soap.Version
	contentType string
	octets      []byte
}

// outbox sends messages of a destination to other addresses.
type outbox struct {
	client *http.Client
	log    *slog.Logger
	ctx    context.Context
	stop   context.CancelFunc
	wait   sync.WaitGroup
	slots  chan struct{} // one for each letter that is sent without a pair

	mu sync.Mutex // of stop
}

const (
	// maxPosts is how many answers of the protocol are under way to other addresses at once, and
	// maxPost how long one may take. Who gets none asks again.
	maxPosts = 64
	maxPost  = 30 * time.Second
)

func newOutbox(client *http.Client, log *slog.Logger) *outbox {
	if client == nil {
		client = &http.Client{}
	}
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	o := &outbox{client: &own, log: log, slots: make(chan struct{}, maxPosts)}
	o.ctx, o.stop = context.WithCancel(context.Background())
	return o
}

// close ends what is under way.
func (o *outbox) close() {
	o.mu.Lock()
	o.stop() // what would begin now does not
	o.mu.Unlock()
	o.wait.Wait()
}

// run does something until the outbox is closed.
func (o *outbox) run(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ctx.Err() == nil {
		o.wait.Go(f)
	}
}

// post sends a letter once, and returns the envelope that comes back; nil: none does. Errors: of
// the connection, and statuses other than those of success.
func (o *outbox) post(l letter) (answer []byte, err error) {
	ctx, cancel := context.WithTimeout(o.ctx, maxPost)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.to, bytes.NewReader(l.octets))
	if err != nil {
		return nil, err
	}
	fields, err := soap.RequestFields(l.version, l.action)
	if err != nil {
		return nil, err
	}
	for _, f := range fields {
		r.Header[f.Name] = []string{f.Value}
	}
	response, err := o.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err = io.ReadAll(io.LimitReader(response.Body, maxControl))
	if err != nil {
		return nil, err
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		err = fmt.Errorf("status %d", response.StatusCode)
	}
	if soap.Recognize(answer).Version == soap.None {
		answer = nil
	}
	return answer, err
}

// send has a letter sent once. It does not wait for that.
func (o *outbox) send(l letter) {
	select {
	case o.slots <- struct{}{}:
	default:
		o.log.Warn("an answer is not sent", "to", l.to, "action", l.action, "err", errTooManyPosts)
		return
	}
	o.run(func() {
		defer func() { <-o.slots }()
		if _, err := o.post(l); err != nil && o.ctx.Err() == nil {
			o.log.Warn("an answer was not taken", "to", l.to, "action", l.action, "err", err)
		}
	})
}

var errTooManyPosts = errors.New("too many are under way")

// remove takes entries out of a store, if they are there.
func remove(ctx context.Context, store ctxstore.Store, uris ...string) error {
	for _, uri := range uris {
		err := store.Delete(ctx, uri, nil)
		if err != nil && !errors.Is(err, ctxstore.NotFound) {
			return unstored(err)
		}
	}
	return nil
}
