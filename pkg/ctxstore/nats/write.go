package nats

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/internal/engine"
)

// Put implements [ctxstore.Store].
func (b *Bucket) Put(ctx context.Context, uri string, value []byte, opt ctxstore.PutOptions) (uint64, error) {
	if err := ctxstore.CheckPut(uri, value, opt); err != nil {
		return 0, err
	}
	if err := b.access.Writable(ctx, uri); err != nil {
		return 0, err
	}
	if _, shape := ctxstore.ParseShapeURI(uri); shape {
		return 1, b.putShape(ctx, uri, value)
	}
	expires := engine.Expiry(b.cfg.Clock, opt.TTL)
	return b.replace(ctx, uri, value, opt.IfRevision, func(state) time.Time { return expires })
}

// Commit implements [ctxstore.Store].
func (b *Bucket) Commit(ctx context.Context, uri string, expect uint64, value []byte) (uint64, error) {
	if err := ctxstore.CheckCommit(uri, value); err != nil {
		return 0, err
	}
	if err := b.access.Writable(ctx, uri); err != nil {
		return 0, err
	}
	return b.replace(ctx, uri, value, &expect, func(was state) time.Time { return was.expires })
}

func (b *Bucket) putShape(ctx context.Context, uri string, value []byte) error {
	_, err := b.replace(ctx, uri, value, ctxstore.If(0), func(state) time.Time { return time.Time{} })
	if err != nil && !errors.Is(err, ctxstore.Conflict) { // it is there already
		return err
	}
	_, _ = b.near.Put(ctx, uri, value, ctxstore.PutOptions{}) // too long for memory: read again
	return nil
}

// maxRaces bounds how often a change without condition is tried again since others were faster.
const maxRaces = 100

// replace stores a value in the place of what there is, if that has the revision that is asked for;
// 0: there must be nothing, nil: whatever it is.
func (b *Bucket) replace(ctx context.Context, uri string, value []byte, expect *uint64,
	expires func(was state) time.Time) (uint64, error) {
	if b.max > 0 && int64(len(value)) > b.max {
		return 0, &ctxstore.Error{
			Code: ctxstore.Full, URI: uri, At: b.access.At,
			Err: fmt.Errorf("the value has %d bytes, the bucket %d", len(value), b.max),
		}
	}
	key, _ := keyOf(uri)
	var err error
	for i := range maxRaces {
		var was state
		if was, err = b.before(ctx, uri, key, expect, i == 0); err != nil {
			return 0, err
		}
		if was.absent(b.cfg.Clock.Now()) {
			was.expires = time.Time{}
		}
		var revision uint64
		if revision, err = b.set(ctx, uri, value, was, expires(was)); err == nil {
			return revision, nil
		}
		b.known.drop(key)
		// Where nothing was expected, it may have been a marker that was in the way.
		if !errors.Is(err, ctxstore.Conflict) || expect != nil && *expect != 0 {
			return 0, err
		}
	}
	return 0, err
}

// before returns the state that a change replaces: what this process knows, as far as that decides,
// else what the servers say; at first, that what must not be there is not.
// [ctxstore.Conflict] if it is not the one expected.
func (b *Bucket) before(ctx context.Context, uri, key string, expect *uint64, first bool) (state, error) {
	now := b.cfg.Clock.Now()
	fits := func(s state) bool {
		return expect == nil || *expect == 0 && s.absent(now) || *expect == s.revision && !s.absent(now)
	}
	known, ok := b.known.get(key)
	if ok && fits(known) {
		return known, nil
	}
	if !ok && first && expect != nil && *expect == 0 {
		return state{gone: true}, nil
	}
	s, _, err := b.last(ctx, uri)
	if err != nil || fits(s) {
		return s, err
	}
	return state{}, &ctxstore.Error{Code: ctxstore.Conflict, URI: uri, At: b.access.At}
}

// set is the one compare-and-set of a change: the value takes the place of exactly this state.
func (b *Bucket) set(ctx context.Context, uri string, value []byte, was state, expires time.Time) (uint64, error) {
	key, long := keyOf(uri)
	s := state{expires: expires}
	m := &nats.Msg{Subject: b.subjects + key, Data: value, Header: nats.Header{}}
	if !expires.IsZero() {
		m.Header.Set(headerExpires, expires.UTC().Format(instant))
	}
	if long {
		m.Header.Set(headerURI, hex.EncodeToString([]byte(uri)))
	}
	life := lifeUntil(expires, b.cfg.Clock.Now())
	var err error
	if size := b.partSize(); len(value) > size {
		if s.parts, err = b.upload(ctx, uri, value, size, life); err != nil {
			return 0, err
		}
		m.Data = nil
		m.Header.Set(headerParts, s.parts.header())
	}
	if s.revision, err = b.publish(ctx, uri, m, was.revision, life); err != nil {
		b.discard(ctx, s.parts)
		return 0, err
	}
	b.discard(ctx, was.parts)
	b.known.set(key, s)
	return s.revision, nil
}

// publish sends a message that replaces the one of a revision. It makes room where there is none. A
// message whose fate is unknown is sent again under the same identity, of which the servers take
// one.
func (b *Bucket) publish(ctx context.Context, uri string, m *nats.Msg, expect uint64, life time.Duration) (
	uint64, error) {
	for full := false; ; full = true {
		id := rand.Text()
		conditions(m.Header, expect, id, life)
		var ack *jetstream.PubAck
		attempts := 0
		err := b.try(ctx, uri, func(ctx context.Context) (err error) {
			attempts++
			ack, err = b.js.PublishMsg(ctx, m, jetstream.WithRetryAttempts(0))
			return err
		})
		if err == nil {
			return ack.Sequence, nil
		}
		if attempts > 1 && errors.Is(err, ctxstore.Conflict) {
			return b.conflict(ctx, uri, m.Subject, id, err)
		}
		if full || !errors.Is(err, ctxstore.Full) {
			return 0, err
		}
		if err := b.makeRoom(ctx, uri, int64(m.Size()), err); err != nil {
			return 0, err
		}
	}
}

// conflict finds out whether the message that is in the way of an attempt is the one of an attempt
// before, whose answer was lost: a server alone looks at revisions before it looks at identities.
func (b *Bucket) conflict(ctx context.Context, uri, subject, id string, conflict error) (uint64, error) {
	var m *jetstream.RawStreamMsg
	err := b.try(ctx, uri, func(ctx context.Context) (err error) {
		m, err = b.stream.GetLastMsgForSubject(ctx, subject)
		return err
	})
	if err == nil && m.Header.Get(jetstream.MsgIDHeader) == id {
		return m.Sequence, nil
	}
	// Another change is there. Whether it came before this one or after it, nobody knows: that is
	// no conflict, after which the caller would try again.
	return 0, &ctxstore.Error{
		Code: ctxstore.Unavailable, URI: uri, At: b.access.At,
		Err: fmt.Errorf("the connection broke, and whether the value was stored is unknown: %s",
			errors.Join(err, conflict).Error()),
	}
}

// partSize is the length of the longest value in one message: what servers take, without the
// fields.
func (b *Bucket) partSize() int {
	const fields, most = 8 << 10, 1 << 20
	return max(int(min(b.conn.MaxPayload(), most))-fields, 1)
}

// upload stores a long value in parts, which nobody knows of yet.
func (b *Bucket) upload(ctx context.Context, uri string, value []byte, size int, life time.Duration) (partsOf, error) {
	p := partsOf{name: rand.Text(), bytes: int64(len(value))}
	key, _ := keyOf(uri)
	for len(value) > 0 {
		n := min(size, len(value))
		m := &nats.Msg{
			Subject: b.partSubject(p.name, strconv.Itoa(p.count)), Data: value[:n],
			Header: nats.Header{headerParts: {key}},
		}
		if _, err := b.publish(ctx, uri, m, 0, life); err != nil {
			b.discard(ctx, p)
			return partsOf{}, err
		}
		value = value[n:]
		p.count++
	}
	return p, nil
}

// discard removes parts. What it cannot remove, the next sweep does.
func (b *Bucket) discard(ctx context.Context, p partsOf) {
	if p.name == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), attempt)
	defer cancel()
	_ = b.stream.Purge(ctx, jetstream.WithPurgeSubject(b.partSubject(p.name, ">")))
}

// Delete implements [ctxstore.Store]. What is deleted leaves a marker behind, as in any bucket.
func (b *Bucket) Delete(ctx context.Context, uri string, ifRevision *uint64) error {
	if err := b.access.Writable(ctx, uri); err != nil {
		return err
	}
	key, _ := keyOf(uri)
	_, shape := ctxstore.ParseShapeURI(uri)
	for range maxRaces {
		was, _, err := b.last(ctx, uri)
		if err != nil {
			return err
		}
		revision := was.revision
		if shape {
			revision = 1
			_ = b.near.Delete(ctx, uri, nil) // which need not have it
		}
		switch {
		case was.absent(b.cfg.Clock.Now()):
			return &ctxstore.Error{Code: ctxstore.NotFound, URI: uri, At: b.access.At}
		case ifRevision != nil && *ifRevision != revision:
			return &ctxstore.Error{Code: ctxstore.Conflict, URI: uri, At: b.access.At}
		}
		m := &nats.Msg{Subject: b.subjects + key, Header: nats.Header{
			headerOperation: {"DEL"}, headerWas: {strconv.FormatUint(revision, 10)},
		}}
		if _, long := keyOf(uri); long {
			m.Header.Set(headerURI, hex.EncodeToString([]byte(uri)))
		}
		_, err = b.publish(ctx, uri, m, was.revision, markerLife)
		if errors.Is(err, ctxstore.Full) { // a marker needs space; this does not
			err = b.purge(ctx, uri, b.subjects+key, was.revision)
		}
		b.known.drop(key)
		if err == nil {
			b.discard(ctx, was.parts)
		}
		if !errors.Is(err, ctxstore.Conflict) {
			return err
		}
	}
	return &ctxstore.Error{Code: ctxstore.Conflict, URI: uri, At: b.access.At}
}

// purge removes the messages of a subject up to a revision.
func (b *Bucket) purge(ctx context.Context, uri, subject string, revision uint64) error {
	return b.try(ctx, uri, func(ctx context.Context) error {
		return b.stream.Purge(ctx, jetstream.WithPurgeSubject(subject), jetstream.WithPurgeSequence(revision+1))
	})
}
