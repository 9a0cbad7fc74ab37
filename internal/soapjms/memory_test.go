package soapjms

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/go-amqp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a broker: what is sent is there until it is settled, and comes again if the link of its
// receiver ends before.
type memory struct {
	mu       sync.Mutex
	changed  chan struct{} // closed at each change
	queues   map[string][]*amqp.Message
	links    map[*memoryLink]bool
	dead     []*amqp.Message
	sent     []*amqp.Message // all that was
	opened   int
	down     error // why links cannot be opened
	refusing error // why messages are not taken
	refuses  int   // how many of them; 0: all
	most     int   // deliveries that were unsettled at once
}

func newMemory() *memory {
	return &memory{changed: make(chan struct{}), queues: map[string][]*amqp.Message{}, links: map[*memoryLink]bool{}}
}

type memoryLink struct {
	of        *memory
	queue     string
	only      string
	credit    int
	unsettled map[*amqp.Message]bool
	ended     error
}

var errBroken = &amqp.ConnError{RemoteErr: &amqp.Error{Description: "the broker is gone"}}

func (b *memory) change() {
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *memory) Open(_ context.Context, queue string, credit int32, only string) (QueueLink, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down != nil {
		return nil, &Error{Code: Unreachable, Err: b.down}
	}
	if b.opened++; queue == "" {
		queue = fmt.Sprintf("temporary-%d", b.opened)
	}
	l := &memoryLink{of: b, queue: queue, only: only, credit: int(credit), unsettled: map[*amqp.Message]bool{}}
	b.links[l] = true
	return l, nil
}

// breaks ends all links.
func (b *memory) breaks(down error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = down
	for l := range b.links {
		l.end(errBroken)
	}
}

func (b *memory) put(queue string, m *amqp.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queues[queue] = append(b.queues[queue], m)
	b.change()
}

// end has what is not settled come again. The broker is locked.
func (l *memoryLink) end(why error) {
	if l.ended != nil {
		return
	}
	l.ended = why
	delete(l.of.links, l)
	for m := range l.unsettled {
		l.of.queues[l.queue] = append(l.of.queues[l.queue], again(m))
	}
	if strings.HasPrefix(l.queue, "temporary-") {
		delete(l.of.queues, l.queue)
	}
	l.of.change()
}

func (l *memoryLink) next() (m *amqp.Message, wait chan struct{}, err error) {
	b := l.of
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.ended != nil {
		return nil, nil, l.ended
	}
	for i, m := range b.queues[l.queue] {
		id, _ := m.Properties.CorrelationID.(string)
		if len(l.unsettled) == l.credit || !strings.HasPrefix(id, l.only) {
			continue
		}
		b.queues[l.queue] = append(b.queues[l.queue][:i:i], b.queues[l.queue][i+1:]...)
		l.unsettled[m] = true
		b.most = max(b.most, len(l.unsettled))
		return m, nil, nil
	}
	return nil, b.changed, nil
}

func (l *memoryLink) Receive(ctx context.Context) (*amqp.Message, error) {
	for {
		m, wait, err := l.next()
		if m != nil || err != nil {
			return m, err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (l *memoryLink) settle(m *amqp.Message) error {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	if l.ended != nil {
		return l.ended
	}
	if !l.unsettled[m] {
		return errors.New("settled twice")
	}
	delete(l.unsettled, m)
	l.of.change()
	return nil
}

func (l *memoryLink) Accept(_ context.Context, m *amqp.Message) error { return l.settle(m) }

func (l *memoryLink) Release(_ context.Context, m *amqp.Message, begun bool) error {
	err := l.settle(m)
	if err == nil && begun {
		m = again(m)
	}
	if err == nil {
		l.of.put(l.queue, m)
	}
	return err
}

// again is a message as it comes after it was begun.
func again(m *amqp.Message) *amqp.Message {
	next, header := *m, amqp.MessageHeader{}
	if m.Header != nil {
		header = *m.Header
	}
	header.DeliveryCount++
	next.Header = &header
	return &next
}

func (l *memoryLink) Reject(_ context.Context, m *amqp.Message, why string) error {
	err := l.settle(m)
	if err == nil {
		l.of.mu.Lock()
		defer l.of.mu.Unlock()
		m.ApplicationProperties["why"] = why
		l.of.dead = append(l.of.dead, m)
	}
	return err
}

func (l *memoryLink) Send(_ context.Context, m *amqp.Message) error {
	l.of.mu.Lock()
	err := l.ended
	if err == nil && l.of.refusing != nil {
		if err = l.of.refusing; l.of.refuses > 0 {
			if l.of.refuses--; l.of.refuses == 0 {
				l.of.refusing = nil
			}
		}
	}
	l.of.mu.Unlock()
	if err != nil {
		return err
	}
	sent := *m
	l.of.mu.Lock()
	l.of.sent = append(l.of.sent, m)
	l.of.mu.Unlock()
	l.of.put(*m.Properties.To, &sent)
	return nil
}

func (l *memoryLink) Address() string { return l.queue }

func (l *memoryLink) Close() error {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	l.end(errBroken)
	return nil
}

// answered is how many requests have a reply, or several.
func (b *memory) answered() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	to := map[any]bool{}
	for _, m := range b.queues["answers"] {
		to[m.Properties.CorrelationID] = true
	}
	return len(to)
}
