package nats

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// Get implements [ctxstore.Store].
func (b *Bucket) Get(ctx context.Context, uri string) (ctxstore.Entry, error) {
	if err := b.access.Readable(ctx, uri); err != nil {
		return ctxstore.Entry{}, err
	}
	fp, shape := ctxstore.ParseShapeURI(uri)
	if shape {
		if e, err := b.near.Get(ctx, uri); err == nil {
			return e, nil
		}
	}
	s, value, err := b.fetch(ctx, uri)
	if err != nil {
		return ctxstore.Entry{}, err
	}
	if !shape {
		return ctxstore.Entry{Value: value, Revision: s.revision, Expires: s.expires}, nil
	}
	if sha256.Sum256(value) != fp {
		return ctxstore.Entry{}, b.corrupt(uri, errors.New("the value is another shape"))
	}
	_, _ = b.near.Put(ctx, uri, value, ctxstore.PutOptions{}) // too long for memory: read again
	return ctxstore.Entry{Value: value, Revision: 1}, nil
}

// Has reports whether there is an entry; see [ctxstore.Has].
func (b *Bucket) Has(ctx context.Context, uri string) (bool, error) {
	if err := b.access.Readable(ctx, uri); err != nil {
		return false, err
	}
	_, shape := ctxstore.ParseShapeURI(uri)
	if shape {
		if there, err := b.near.Has(ctx, uri); there {
			return true, err
		}
	}
	s, _, err := b.last(ctx, uri)
	return err == nil && !s.absent(b.cfg.Clock.Now()), err
}

// maxReads bounds how often an entry is read whose parts are replaced meanwhile.
const maxReads = 10

// fetch reads an entry whole.
func (b *Bucket) fetch(ctx context.Context, uri string) (state, []byte, error) {
	var missing error
	for range maxReads {
		s, value, err := b.last(ctx, uri)
		if err != nil {
			return state{}, nil, err
		}
		if s.absent(b.cfg.Clock.Now()) {
			return state{}, nil, &ctxstore.Error{Code: ctxstore.NotFound, URI: uri, At: b.access.At}
		}
		if s.parts.name == "" {
			return s, value, nil
		}
		if value, missing = b.join(ctx, uri, s.parts); missing == nil {
			return s, value, nil
		}
		if !errors.Is(missing, ctxstore.NotFound) {
			return state{}, nil, missing
		}
	}
	return state{}, nil, b.corrupt(uri, fmt.Errorf("a part of it: %w", missing))
}

// last reads the message of an entry, and what it says; an entry that never was is gone.
func (b *Bucket) last(ctx context.Context, uri string) (s state, value []byte, err error) {
	key, long := keyOf(uri)
	var m *jetstream.RawStreamMsg
	err = b.try(ctx, uri, func(ctx context.Context) (err error) {
		m, err = b.stream.GetLastMsgForSubject(ctx, b.subjects+key)
		return err
	})
	if errors.Is(err, ctxstore.NotFound) {
		return state{gone: true}, nil, nil
	}
	if err != nil {
		return state{}, nil, err
	}
	if s, err = stateOf(m.Header, m.Sequence); err != nil {
		return state{}, nil, b.corrupt(uri, err)
	}
	if long && !s.gone && s.uri != uri {
		return state{}, nil, b.corrupt(uri, fmt.Errorf("the key has the entry of %q", s.uri))
	}
	b.known.set(key, s)
	if m.Data == nil {
		m.Data = []byte{}
	}
	return s, m.Data, nil
}

// join reads the parts of a value.
func (b *Bucket) join(ctx context.Context, uri string, p partsOf) ([]byte, error) {
	value := make([]byte, 0, p.bytes)
	for i := range p.count {
		err := b.try(ctx, uri, func(ctx context.Context) error {
			m, err := b.stream.GetLastMsgForSubject(ctx, b.partSubject(p.name, strconv.Itoa(i)))
			if err == nil {
				value = append(value, m.Data...)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if int64(len(value)) != p.bytes {
		return nil, b.corrupt(uri, fmt.Errorf("its parts have %d bytes, not %d", len(value), p.bytes))
	}
	return value, nil
}

func (b *Bucket) partSubject(name, number string) string {
	return b.subjects + partKeys + name + "." + number
}

func (b *Bucket) corrupt(uri string, err error) error {
	return &ctxstore.Error{Code: ctxstore.Corrupt, URI: uri, At: b.access.At, Err: err}
}
