package nats

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// listedEntry is a message in a list, without its value.
type listedEntry struct {
	key  string
	uri  string
	size int64
	when time.Time
	state
	err error
}

// List implements [ctxstore.Store].
func (b *Bucket) List(ctx context.Context, prefix string) iter.Seq2[ctxstore.Info, error] {
	return func(yield func(ctxstore.Info, error) bool) {
		var list []listedEntry
		err := b.access.Usable(ctx)
		if err == nil {
			list, err = b.messages(ctx, filters(prefix))
		}
		if err != nil {
			yield(ctxstore.Info{}, err)
			return
		}
		now := b.cfg.Clock.Now()
		list = slices.DeleteFunc(list, func(l listedEntry) bool {
			return l.err == nil && l.absent(now) || !strings.HasPrefix(l.uri, prefix)
		})
		slices.SortFunc(list, func(x, y listedEntry) int { return strings.Compare(x.uri, y.uri) })
		for _, l := range list {
			if err := b.access.Usable(ctx); err != nil {
				yield(ctxstore.Info{}, err)
				return
			}
			info := ctxstore.Info{URI: l.uri, Revision: l.revision, Size: l.size, Expires: l.expires}
			if _, shape := ctxstore.ParseShapeURI(l.uri); shape {
				info.Revision = 1
			}
			if l.err != nil {
				info = ctxstore.Info{}
			}
			if !yield(info, l.err) {
				return
			}
		}
	}
}

// messages reads the fields of all messages under some keys, in the order in which they were
// stored.
func (b *Bucket) messages(ctx context.Context, keys []string) (list []listedEntry, err error) {
	err = b.try(ctx, "", func(once context.Context) error {
		list = list[:0]
		c, release, err := b.consumer(once, keys, jetstream.OrderedConsumerConfig{
			DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy,
		})
		if err != nil {
			return err
		}
		defer release()
		if c.CachedInfo().NumPending == 0 {
			return nil
		}
		messages, err := c.Messages()
		if err != nil {
			return err
		}
		defer messages.Stop()
		for {
			// A list may be long; only silence ends it.
			next, cancel := context.WithTimeout(ctx, attempt)
			m, err := messages.Next(jetstream.NextContext(next))
			cancel()
			if err != nil {
				return err
			}
			about, err := m.Metadata()
			if err != nil {
				return err
			}
			list = append(list, b.listedOf(m, about))
			if about.NumPending == 0 {
				return nil
			}
		}
	})
	return list, err
}

// consumerLife is how long the servers keep a consumer that nobody asks for messages: that of a
// process that was killed.
const consumerLife = 5 * time.Second

// consumer makes a consumer of the fields of messages under some keys. The servers allow a stream
// some 1,000 of them: release must be called, and has them delete it, without waiting for that. The
// request for it goes on when ctx is done, since what the servers make after that would stay.
func (b *Bucket) consumer(
	ctx context.Context, keys []string, cfg jetstream.OrderedConsumerConfig,
) (c jetstream.Consumer, release func(), err error) {
	cfg.HeadersOnly, cfg.InactiveThreshold = true, consumerLife
	for _, key := range keys {
		cfg.FilterSubjects = append(cfg.FilterSubjects, b.subjects+key)
	}
	once, done := context.WithTimeout(context.WithoutCancel(ctx), attempt)
	defer done()
	defer context.AfterFunc(b.linked(), done)()
	c, err = b.stream.OrderedConsumer(once, cfg)
	return c, func() {
		of := c.CachedInfo()
		_ = b.conn.Publish(jetstream.DefaultAPIPrefix+"CONSUMER.DELETE."+of.Stream+"."+of.Name, nil)
	}, err
}

// listedOf reads the fields of a message.
func (b *Bucket) listedOf(m jetstream.Msg, about *jetstream.MsgMetadata) listedEntry {
	l := listedEntry{key: strings.TrimPrefix(m.Subject(), b.subjects), when: about.Timestamp}
	var problem error
	l.state, problem = stateOf(m.Headers(), about.Sequence.Stream)
	var ok bool
	if l.uri, ok = uriOf(l.key); !ok {
		l.uri = l.state.uri
	}
	l.size = l.parts.bytes
	if l.parts.name == "" {
		l.size, _ = strconv.ParseInt(m.Headers().Get(headerSize), 10, 64)
	}
	if problem == nil && ctxstore.CheckURI(l.uri) != nil && !strings.HasPrefix(l.key, partKeys) {
		problem = errors.New("the key " + strconv.Quote(l.key) + " is no entry")
	}
	if problem != nil {
		l.err = b.corrupt(l.uri, problem)
	}
	return l
}

// Watch implements [ctxstore.Store]. Shapes that are dropped for others are not reported.
func (b *Bucket) Watch(ctx context.Context, prefix string) (<-chan ctxstore.Change, error) {
	if err := b.access.Usable(ctx); err != nil {
		return nil, err
	}
	var messages jetstream.MessagesContext
	var release func()
	err := b.try(ctx, "", func(ctx context.Context) error {
		info, err := b.stream.Info(ctx)
		if err != nil {
			return err
		}
		var c jetstream.Consumer
		c, release, err = b.consumer(ctx, filters(prefix), jetstream.OrderedConsumerConfig{
			DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: info.State.LastSeq + 1,
		})
		if err != nil {
			return err
		}
		if messages, err = c.Messages(); err != nil {
			release()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	out := make(chan ctxstore.Change)
	b.watching.Go(func() {
		defer cancel()
		defer context.AfterFunc(b.access.Open, cancel)()
		defer close(out)
		defer release()
		defer messages.Stop()
		b.report(ctx, prefix, messages, out)
	})
	return out, nil
}

// report turns messages into changes until ctx is done.
func (b *Bucket) report(ctx context.Context, prefix string, messages jetstream.MessagesContext,
	out chan<- ctxstore.Change) {
	passing := map[string]uint64{} // revisions of entries that expire: the servers' markers do not say
	for {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if ctx.Err() != nil || errors.Is(err, jetstream.ErrMsgIteratorClosed) {
			return
		}
		if err != nil {
			continue // it goes on by itself
		}
		about, err := m.Metadata()
		if err != nil {
			continue
		}
		l := b.listedOf(m, about)
		if !strings.HasPrefix(l.uri, prefix) || l.err != nil {
			continue
		}
		c := ctxstore.Change{URI: l.uri, Revision: l.revision, Deleted: l.gone}
		if l.gone {
			c.Revision = max(l.was, passing[l.uri])
		} else if _, shape := ctxstore.ParseShapeURI(l.uri); shape {
			c.Revision = 1
		}
		if delete(passing, l.uri); !l.gone && !l.expires.IsZero() {
			passing[l.uri] = l.revision
		}
		select {
		case out <- c:
		case <-ctx.Done():
			return
		}
	}
}
