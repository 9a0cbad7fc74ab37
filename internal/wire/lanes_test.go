package wire_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/wire"
)

// heap is what is in use, in octets, without what pools keep.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestMemoryMakesTheNextMessageSmall(t *testing.T) {
	for stages, small := range map[uint64]bool{
		allStages:                  true,
		wire.Columns | wire.Memory: true,
		wire.Columns | wire.Zstd:   false,
		wire.Columns:               false,
	} {
		p := newPair(t, wire.EncoderConfig{}, stages)
		by := p.learn(order(0, "anybody"))
		size := func(i int) int { return len(p.send(1, by, order(i, "somebody with a long name"))[0]) }
		var sizes []int
		for i := range 10 {
			sizes = append(sizes, size(i))
		}
		assert.Equal(t, small, sizes[9] < 8, "%v", sizes)
		p.sync()
		assert.Greater(t, size(10), 20, "a sync empties the memory")
	}
}

// TestLanesTellNothingOfEachOther: what one lane sends is the same octets whatever another does,
// guesses of its secrets included.
func TestLanesTellNothingOfEachOther(t *testing.T) {
	secret := "the secret of lane one"
	alone, beside := newPair(t, wire.EncoderConfig{}, announcing), newPair(t, wire.EncoderConfig{}, announcing)
	by, byToo := alone.learn(order(0, "anybody")), beside.learn(order(0, "anybody"))
	rnd := rand.New(rand.NewPCG(5, 6))
	for i := range 200 {
		require.Equal(t, alone.send(1, by, order(i, secret)), beside.send(1, byToo, order(i, secret)), "message %d", i)
		guess := beside.send(2, byToo, order(i, []string{secret, "another guess, as long", secret[:9]}[rnd.IntN(3)]))
		if i == 0 {
			other := newPair(t, wire.EncoderConfig{}, announcing)
			by := other.learn(order(0, "anybody"))
			assert.Len(t, other.send(2, by, order(0, secret))[0], len(guess[0]))
			wrong := other.send(3, by, order(0, "the wrong of lane five"))[0]
			assert.Len(t, wrong, len(guess[0]), "a right guess is as long as a wrong one")
		}
	}
}

// What builds on messages that were given up is not taken for what it is not, until its lane
// begins anew.
func TestMessagesGivenUpLoseTheMemory(t *testing.T) {
	p := newPairTo(t, wire.EncoderConfig{}, allStages, wire.DecoderConfig{Shapes: newShelf()}) // nothing can be held
	by, missing := p.learn(order(0, "anybody")), 0
	lose := func() {
		lacks := len(p.r.lacks)
		m := fmt.Sprintf("<missing%d>1</missing%d>", missing, missing)
		shape := p.learn(m)
		p.peer.believed[shape.Shape().Fingerprint()] = true
		p.put(1, shape, m)
		require.NoError(t, p.deliver())
		require.Len(t, p.r.lacks, lacks+1)
		missing++
	}
	forgotten := func(why string) {
		p.put(1, by, order(6, "else"))
		require.ErrorIs(t, p.arrive().err, &wire.Error{Code: wire.Forgotten}, why)
	}
	for i := range 5 {
		p.send(1, by, order(i, "somebody"))
	}
	lose()
	forgotten("it was packed on what is lost")
	forgotten("and so is what follows")
	p.send(2, by, order(6, "other lanes go on"))
	p.enc.Restart(1)
	p.enc.Restart(1)
	for i := range 5 {
		p.send(1, by, order(i, "else"))
	}
	lose()
	forgotten("again")
	p.sync()
	p.send(1, by, order(7, "a sync ends that, too"))
}

// inTwo begins a message whose head is in a frame of its own: its body is what is left of it.
func (p *pair) inTwo(lane uint64, head string, headBy *program.Program, body string, by *program.Program) *sending {
	p.t.Helper()
	s := p.begin(lane, false, []byte(head), []byte(body), headBy, by)
	s.apart = true
	require.True(p.t, p.next(s))
	return s
}

// A head that goes ahead of its body, since that is not there yet, costs a frame and not what the
// lane remembers of either.
func TestHeadsAheadOfTheirBodies(t *testing.T) {
	p := newPair(t, wire.EncoderConfig{}, allStages)
	head := func(n int) string { return fmt.Sprintf("<h><at>/orders</at><length>%d</length></h>", n) }
	headBy, by := p.learn(head(1)), p.learn(order(0, "somebody"))
	octets := func(apart bool, i int) int {
		p.take()
		from := len(p.tape)
		s := p.begin(1, false, []byte(head(i)), []byte(order(i, "somebody")), headBy, by)
		s.apart = apart
		p.whole(s)
		m := p.arrive()
		require.NoError(t, m.err)
		require.Equal(t, head(i)+order(i, "somebody"), string(m.head)+string(m.body))
		return len(p.came) - from
	}
	for i := range 5 {
		octets(i%2 == 0, i)
	}
	for i := 5; i < 10; i++ {
		assert.LessOrEqual(t, octets(true, i), octets(false, i)+6)
	}
	s := p.inTwo(1, head(10), headBy, order(10, "behind a sync"), by)
	p.enc.Sync(p.now)
	p.whole(s)
	p.put(1, by, order(11, "nobody knows"))
	p.send(1, by, order(12, "nobody knows"))
	joins := newReader(wire.DecoderConfig{Shapes: p.shapes, Named: p.shapes.named})
	joins.dec.Lose(-1)
	_, err := joins.read(p.came)
	require.NoError(t, err)
	require.Len(t, joins.messages, 2, "whoever joins at that sync reads what began behind it")
	for i, m := range joins.messages {
		require.NoError(t, m.err)
		require.Equal(t, order(11+i, "nobody knows"), string(m.body))
	}
}

// What is left of a message when its lane becomes another client's is nothing to that one.
func TestWhatIsLeftOfAMessageIsNotForTheNextClient(t *testing.T) {
	const head, secret = "<h><at>/orders</at></h>", "my secret, word for word"
	length := func(guess string) int {
		p := newPair(t, wire.EncoderConfig{}, allStages)
		headBy, by := p.learn(head), p.learn(order(0, secret))
		p.send(1, by, order(0, "other words of the client before"))
		s := p.inTwo(1, head, headBy, order(1, secret), by)
		p.enc.Restart(1)
		p.whole(s)
		require.NoError(t, p.arrive().err)
		return len(p.send(1, by, order(2, guess))[0])
	}
	assert.Equal(t, length("my public, word for word"), length(secret))
}

// A message that is given up while its head waits for a shape was in the memory of its lane all the
// same.
func TestGivenUpWhileItsHeadWaits(t *testing.T) {
	p := newPair(t, wire.EncoderConfig{}, allStages)
	const head = "<h><at>/orders</at></h>"
	headBy, by := p.learn(head), p.learn(order(0, "somebody"))
	p.peer.believed[headBy.Shape().Fingerprint()] = true
	p.send(1, by, order(1, "somebody"))
	s := p.inTwo(1, head, headBy, order(2, "somebody"), by)
	require.NoError(t, p.deliver())
	require.Len(t, p.r.lacks, 1)
	p.put(1, by, order(3, "somebody"))
	p.enc.Drop(&s.Outgoing, frame.Aborted)
	require.NoError(t, p.deliver())
	for transfer := p.enc.Lacks(p.r.lacks[0]); !p.enc.Piece(transfer, p.now); {
		continue
	}
	m := p.arrive()
	require.NoError(t, m.err)
	require.Equal(t, order(3, "somebody"), string(m.body))
	again := p.begin(1, false, []byte(head), []byte(order(4, "somebody")), headBy, by)
	p.whole(again)
	m = p.arrive()
	require.NoError(t, m.err)
	require.Equal(t, head, string(m.head))
}

// TestMemoryOfALaneIsBounded: messages whose words are new, and come again within them, leave at
// most 256 KiB at each end, however many a sync lets come.
func TestMemoryOfALaneIsBounded(t *testing.T) {
	for lanes, each := range map[uint64]int{8: 1, 1: 8} {
		t.Run(fmt.Sprintf("%d on %d lanes", each, lanes), func(t *testing.T) {
			p := newPair(t, wire.EncoderConfig{}, allStages)
			rnd := rand.New(rand.NewPCG(7, 8))
			by := p.learn(wordy(rnd))
			send := func(lane uint64) {
				require.Len(t, p.send(lane, by, wordy(rnd)), 1)
				p.forget()
			}
			for range 4 {
				send(99)
			}
			p.sync()
			before := heap()
			for lane := range lanes {
				for range each {
					send(lane)
				}
			}
			used := (heap() - before) / int64(2*lanes)
			require.Len(t, p.r.verdicts, 1, "no sync came between")
			assert.Greater(t, used, int64(10<<10), "they are remembered")
			assert.LessOrEqual(t, used, int64(256<<10), "octets of one direction's memory at one end")
			t.Logf("%d octets", used)
			p.sync()
			assert.LessOrEqual(t, heap()-before, int64(128<<10), "a sync gives it back")
			runtime.KeepAlive(p)
		})
	}
}

// wordy is a message of one kind, of texts of new words that come again in it.
func wordy(rnd *rand.Rand) string {
	var b bytes.Buffer
	b.WriteString(`<?xml version="1.0"?><s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><o>`)
	for i := range 12 {
		fmt.Fprintf(&b, "<v%d>", i)
		for range 12 {
			word := fmt.Sprintf("w%x ", rnd.Uint64())
			b.WriteString(word + word + word)
		}
		fmt.Fprintf(&b, "</v%d>", i)
	}
	b.WriteString("</o></s:Body></s:Envelope>")
	return b.String()
}

// TestIdleLanesTakeLittleMemory: lanes that were used once, and are idle; they go on in step, as
// if nothing had been.
func TestIdleLanesTakeLittleMemory(t *testing.T) {
	const lanes = 250 // so that no sync comes between
	p := newPair(t, wire.EncoderConfig{}, allStages)
	by := p.learn(order(0, "anybody"))
	send := func(from int) (octets int) {
		for i := range uint64(lanes) {
			n := from + int(i)
			octets += len(p.send(i, by, order(n, fmt.Sprintf("somebody with the number %d", n)))[0])
			p.forget()
		}
		return octets
	}
	p.send(0, by, order(0, "anybody"))
	p.forget()
	before := heap()
	first := send(0)
	used := heap() - before
	assert.Greater(t, used, int64(2*lanes*1024))
	rest := func() {
		assert.Equal(t, p.now, p.enc.Rest(p.now.Add(-time.Second)), "they were used a moment ago")
		assert.Zero(t, p.enc.Rest(p.now))
		assert.Empty(t, p.enc.Bytes(), "no memory is given back")
		assert.True(t, p.r.dec.Rest(), "they were used a moment ago")
		assert.False(t, p.r.dec.Rest())
	}
	rest()
	left := heap() - before
	assert.Less(t, left, int64(2*lanes*512), "octets at both ends")
	t.Logf("%d lanes: %d octets at both ends, %d when idle", lanes, used, left)
	again := send(lanes)
	assert.Less(t, 2*again, first, "what was folded is remembered")
	rest()
	assert.Less(t, 2*send(2*lanes), first)
	assert.Empty(t, p.r.verdicts)
	runtime.KeepAlive(p)
}

// A lane that is idle with a large memory has it given back at both ends, and begins anew.
func TestIdleLanesWithLargeMemoriesAreGivenBack(t *testing.T) {
	p := newPair(t, wire.EncoderConfig{}, announcing)
	rnd := rand.New(rand.NewPCG(1, 1))
	large := wordy(rnd)
	by, small := p.learn(large), p.learn(order(0, "anybody"))
	first := len(p.send(3, by, large)[0])
	p.send(4, small, order(1, "somebody"))
	for lane := range uint64(8) { // one of a few may keep more
		p.send(10+lane, small, order(1, "somebody"))
	}
	assert.Less(t, len(p.send(3, by, large)[0]), first/10, "it is remembered")
	assert.Zero(t, p.enc.Rest(p.now))
	require.Len(t, p.enc.Written(), 1)
	f, _, err := frame.Parse(p.enc.Bytes(), 0, 0)
	require.NoError(t, err)
	assert.Equal(t, frame.Idle{Lanes: []uint64{3}}, f)
	require.NoError(t, p.deliver())
	assert.Len(t, p.send(3, by, large)[0], first)
	assert.Less(t, len(p.send(4, small, order(2, "somebody"))[0]), 8)
}
