package streamer_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/streamer"
)

// TestTextsAreAtTheirSize: what the application is given of a message takes no more memory than its
// text, however it was joined.
func TestTextsAreAtTheirSize(t *testing.T) {
	p := connect(t, pairing{handlerb: echo, codera: newRawCoder(one), coderb: newRawCoder(one)})
	for _, text := range []string{"x", strings.Repeat("text ", 100), strings.Repeat("long ", 5000)} {
		for name, want := range map[string]string{"under a shape": one.message(text), "as text": text} {
			r, err := p.a.Lane(0).Call(t.Context(), streamer.NewMessage(nil, []byte(want)))
			require.NoError(t, err)
			got, err := r.ReadAll(1 << 20)
			require.NoError(t, err)
			assert.Equal(t, want, string(got))
			assert.LessOrEqual(t, cap(got), len(got)+len(got)/4+16, name)
		}
	}
}

// TestWhatWasReadStays: texts that the application holds are its own for ever, whatever comes
// later, read in whatever way, of requests, replies and one-way messages at the same time. With the
// race detector, memory that is used again is overwritten before.
func TestWhatWasReadStays(t *testing.T) {
	const callers, each = 8, 60
	var mu sync.Mutex
	held := map[string][]byte{} // by what they must be
	hold := func(want string, got []byte) {
		mu.Lock()
		defer mu.Unlock()
		held[want] = got
	}
	var served sync.WaitGroup
	handler := func(ctx context.Context, x *streamer.Exchange) {
		defer served.Done()
		head := x.Message().Head
		body, err := x.Message().ReadAll(1 << 20)
		assert.NoError(t, err)
		name, _, _ := strings.Cut(string(head), "\r\n")
		hold(name, body)
		hold("head of "+name, head)
		if !x.OneWay() {
			assert.NoError(t, x.Reply(ctx, streamer.NewMessage([]byte("answer "+string(head)), body)))
		}
	}
	p := connect(t, pairing{handlerb: handler, codera: newRawCoder(one, two), coderb: newRawCoder(one, two)})
	text := func(name string) []byte { // of a length that tells nothing of the next one
		k := []*kind{one, two, nil}[len(name)%3]
		long := strings.Repeat(name+" ", 1+len(name)*len(name)%97)
		if k == nil {
			return []byte(long)
		}
		return []byte(k.message(long))
	}
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			lane := p.a.Lane(uint64(c % 3))
			for i := range each {
				name := fmt.Sprintf("%s%d/%d", strings.Repeat("m", i%7), c, i)
				served.Add(2)
				oneway := name + " one-way"
				assert.NoError(t, lane.Send(t.Context(), streamer.NewMessage([]byte(oneway), text(oneway))))
				r, err := lane.Call(t.Context(), streamer.NewMessage([]byte(name), text(name)))
				if !assert.NoError(t, err) {
					return
				}
				assert.Equal(t, "answer "+name, string(r.Head))
				body, err := r.ReadAll(1 << 20)
				if i%2 == 0 && err == nil { // the other way to read, of the same
					served.Add(1)
					again, err := lane.Call(t.Context(), streamer.NewMessage([]byte(name), text(name)))
					if assert.NoError(t, err) {
						body, err = io.ReadAll(again.Body)
						assert.NoError(t, err)
					}
				}
				assert.NoError(t, err)
				hold("reply to "+name, body)
			}
		})
	}
	all.Wait()
	served.Wait()
	for want, got := range held {
		name, isHead := strings.CutPrefix(want, "head of ")
		if isHead {
			assert.Equal(t, name, string(got))
			continue
		}
		name, _ = strings.CutPrefix(name, "reply to ")
		assert.Equal(t, string(text(name)), string(got), want)
	}
}
