package binary_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/codec/binary"
	"github.com/hhfr/hhfr/pkg/shape"
	"github.com/hhfr/hhfr/pkg/shape/transit"
)

// shapes is a store of shapes in memory.
type shapes struct {
	mu     sync.Mutex
	octets map[binary.Fingerprint][]byte
	broken bool
}

func (s *shapes) Get(_ context.Context, fp binary.Fingerprint) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b, ok := s.octets[fp]; ok {
		return b, nil
	}
	return nil, errors.New("not there")
}

func (s *shapes) Put(_ context.Context, b []byte) (binary.Fingerprint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken {
		return binary.Fingerprint{}, errors.New("no space left")
	}
	if s.octets == nil {
		s.octets = map[binary.Fingerprint][]byte{}
	}
	fp := sha256.Sum256(b)
	s.octets[fp] = bytes.Clone(b)
	return fp, nil
}

// end is one end of a direction.
type end struct {
	store shapes
	book  *binary.Book
	coder *binary.Coder
}

func newEnd(opt binary.Options) *end {
	e := &end{}
	e.book = binary.NewBook(&e.store)
	e.coder = e.book.Coder(opt)
	e.coder.PeerLimits(1024, 4<<20)
	return e
}

// direction carries messages from one end to the other as a stream would, in one goroutine.
type direction struct {
	from, to      *end
	full, content int // octets of shapes in full, of content
	references    int
	texts         int // segments of text
}

func (d *direction) announce(t testing.TB, number uint64) {
	fp, full, ok := d.from.coder.Announce(number)
	if !ok {
		return
	}
	if full != nil {
		d.full += len(full)
		_, err := d.to.coder.Define(number, bytes.Clone(full))
		require.NoError(t, err)
		return
	}
	d.references++
	known, err := d.to.coder.Refer(number, fp)
	require.NoError(t, err)
	if !known {
		d.define(t, number, fp)
	}
}

// define has a shape sent that the other end lacks.
func (d *direction) define(t testing.TB, number uint64, fp binary.Fingerprint) {
	full, err := d.from.coder.Lacks(number)
	require.NoError(t, err)
	d.full += len(full)
	got, err := d.to.coder.Define(number, bytes.Clone(full))
	require.NoError(t, err)
	require.Equal(t, shape.Fingerprint(fp), shape.Fingerprint(got))
}

func (d *direction) send(t testing.TB, head []byte, body io.Reader, most int) (gotHead, gotBody []byte) {
	type part struct {
		number   uint64
		segments [][]byte
		text     []bool
	}
	var parts [2]part
	require.NoError(t, d.from.coder.Split(0, head, body, most, func(inHead bool, number uint64, text bool, data []byte) error {
		require.LessOrEqual(t, len(data), most)
		p := &parts[1]
		if inHead {
			p = &parts[0]
			require.Empty(t, parts[1].segments, "the head comes first")
		}
		p.number = number
		p.segments, p.text = append(p.segments, bytes.Clone(data)), append(p.text, text)
		if d.content += len(data); text || number == 0 {
			d.texts++
		}
		return nil
	}))
	out := [2][]byte{}
	for i, p := range parts {
		if len(p.segments) == 0 {
			continue
		}
		if p.number > 0 {
			d.announce(t, p.number)
		}
		join, err := d.to.coder.NewJoin(p.number)
		require.NoError(t, err)
		for k, seg := range p.segments {
			out[i], err = join(out[i], seg, p.text[k], k == len(p.segments)-1)
			require.NoError(t, err)
		}
	}
	require.NotEmpty(t, parts[1].segments, "a body has at least one segment")
	return out[0], out[1]
}

// enveloped makes a body long enough that its shape goes with the first of its kind.
func enveloped(m string) string {
	return `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>` + m + `</s:Body></s:Envelope>`
}

// The shape of a body that is shorter than it goes with the second of its kind.
func TestShapesOfShortBodiesComeWithTheSecond(t *testing.T) {
	d := direction{from: newEnd(binary.Options{}), to: newEnd(binary.Options{})}
	for i, want := range []bool{false, true, true} {
		m := fmt.Sprintf("<a><b>%d</b></a>", i)
		_, got := d.send(t, nil, strings.NewReader(m), 4096)
		requireSame(t, []byte(m), got, m)
		assert.Equal(t, want, d.full > 0)
	}
	assert.Equal(t, 1, d.texts)
}

// Shapes that are like one sent before come close to it.
func TestShapesStandOnOthers(t *testing.T) {
	d := direction{from: newEnd(binary.Options{}), to: newEnd(binary.Options{})}
	kind := func(name string) string {
		return enveloped("<q:" + name + ` xmlns:q="urn:example:a-name-of-some-length"><value>1</value></q:` + name + ">")
	}
	d.send(t, nil, strings.NewReader(kind("First")), 4096)
	first := d.full
	_, got := d.send(t, nil, strings.NewReader(kind("Second")), 4096)
	assert.Equal(t, kind("Second"), string(got))
	assert.Less(t, d.full-first, first/2)

	require.NoError(t, d.from.coder.Split(0, nil, strings.NewReader(kind("Third")), 4096, func(_ bool, number uint64, _ bool, _ []byte) error {
		_, full, ok := d.from.coder.Announce(number)
		require.True(t, ok)
		_, err := newEnd(binary.Options{}).coder.Define(number, full)
		assert.ErrorIs(t, err, &binary.Error{Code: binary.BadShape}, "an end that was never told of the base")
		return nil
	}))
}

func requireSame(t testing.TB, want, got []byte, what string) {
	if !bytes.Equal(want, got) {
		t.Fatalf("%s: %d octets became %d", what, len(want), len(got))
	}
}

// TestShuffledOnTheCorpus: all messages in no order, as one sequence.
func TestShuffledOnTheCorpus(t *testing.T) {
	paths := shared.Messages(t)
	rand.New(rand.NewPCG(11, 12)).Shuffle(len(paths), func(i, k int) { paths[i], paths[k] = paths[k], paths[i] })
	d := direction{from: newEnd(binary.Options{}), to: newEnd(binary.Options{})}
	for _, path := range paths {
		message := shared.Read(t, path)
		_, got := d.send(t, nil, bytes.NewReader(message), 4096)
		requireSame(t, message, got, path)
	}
}

func TestCorpusTwice(t *testing.T) {
	for _, most := range []int{16384 - 64, 4096, 480} {
		d := direction{from: newEnd(binary.Options{}), to: newEnd(binary.Options{})}
		before := 0
		for round := range 3 {
			octets := 0
			for i, path := range shared.Messages(t) {
				message := shared.Read(t, path)
				octets += len(message)
				head := fmt.Appendf(nil, "POST /echo HTTP/1.1\r\nContent-Type: text/xml\r\nX-Number: %d\r\n\r\n", i)
				gotHead, gotBody := d.send(t, head, bytes.NewReader(message), most)
				requireSame(t, head, gotHead, path)
				requireSame(t, message, gotBody, path)
			}
			if round == 2 {
				assert.Equal(t, before, d.full, "the third round needs no new shape; those of bodies shorter than a shape come with the second")
			}
			before = d.full
			t.Logf("round %d: %d octets of messages; shapes %d, content %d, text segments %d", round+1, octets, d.full, d.content, d.texts)
		}
		for fp := range d.to.store.octets {
			assert.Contains(t, d.from.store.octets, fp, "a shape is in the stores of both ends")
		}
		assert.Greater(t, 20*len(d.to.store.octets), 19*len(d.from.store.octets), "hardly a shape is not worth to be sent")
	}
}

func TestBodiesInAnyChunks(t *testing.T) {
	path := filepath.Join(shared.Dir(t, "corpus", "messages", "soap11", "jtlm"), "publish911.xml")
	message := shared.Read(t, path)
	d := direction{from: newEnd(binary.Options{}), to: newEnd(binary.Options{})}
	for i, r := range []io.Reader{bytes.NewReader(message), iotest.HalfReader(bytes.NewReader(message)), iotest.OneByteReader(bytes.NewReader(message[:100000])), iotest.DataErrReader(bytes.NewReader(message))} {
		_, got := d.send(t, nil, r, 4096)
		requireSame(t, message[:len(got)], got, path)
		if i != 2 {
			assert.Len(t, got, len(message))
		}
	}
}

// TestLongerThanTheLearnerLooks: what the learner did not see goes on alike, or as text.
func TestLongerThanTheLearnerLooks(t *testing.T) {
	for _, tail := range []string{"</r></a>", "</r><other x='1'>&amp;</other></a>\n", "", "<"} {
		message := "<a><r>" + strings.Repeat("QUJDRA==", 900_000) + tail
		d := direction{from: newEnd(binary.Options{}), to: newEnd(binary.Options{})}
		for range 2 {
			_, got := d.send(t, nil, strings.NewReader(message), 16000)
			requireSame(t, []byte(message), got, tail)
		}
		rows := "<a>" + strings.Repeat("<r>17</r>", 700_000) + tail
		_, got := d.send(t, nil, strings.NewReader(rows), 16000)
		requireSame(t, []byte(rows), got, tail)
	}
}

func TestPrefixesAloneMakeNoNewShape(t *testing.T) {
	d := direction{from: newEnd(binary.Options{}), to: newEnd(binary.Options{})}
	for _, p := range [][2]string{{"ns1", "ns2"}, {"a0", "a1"}, {"d4p1", "d5p1"}, {"ns09", "ns10"}, {"q999", "q1000"}} {
		m := strings.NewReplacer("P", p[0], "Q", p[1]).Replace(`<P:x xmlns:P="urn:1"><Q:y xmlns:Q="urn:2" xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:type="P:t">5</Q:y></P:x>`)
		_, got := d.send(t, nil, strings.NewReader(m), 4096)
		requireSame(t, []byte(m), got, m)
	}
	assert.Len(t, d.from.store.octets, 1)
}

func TestTextRepresentation(t *testing.T) {
	d := direction{from: newEnd(binary.Options{Text: true}), to: newEnd(binary.Options{Text: true})}
	for _, m := range []string{"", "<a>1</a>", strings.Repeat("<a>1</a>", 30000)} {
		head, got := d.send(t, []byte("GET / HTTP/1.1\r\n\r\n"), strings.NewReader(m), 4096)
		assert.Equal(t, m, string(got))
		assert.Equal(t, "GET / HTTP/1.1\r\n\r\n", string(head))
	}
	assert.Zero(t, d.full)
}

func TestReferencesWhereThePeerKnows(t *testing.T) {
	a, b := newEnd(binary.Options{}), newEnd(binary.Options{})
	there, back := direction{from: a, to: b}, direction{from: b, to: a}
	m := []byte(enveloped("<a><b>text</b><c d='1'/></a>"))
	_, got := there.send(t, nil, bytes.NewReader(m), 4096)
	requireSame(t, m, got, "there")
	_, got = back.send(t, nil, bytes.NewReader(m), 4096)
	requireSame(t, m, got, "back")
	assert.Positive(t, there.full)
	assert.Zero(t, back.full, "the way back refers to the shape that came")
	assert.Equal(t, 1, back.references)

	fps := a.book.Known(10)
	require.Len(t, fps, 1)
	later := direction{from: a, to: newEnd(binary.Options{})}
	a.coder = a.book.Coder(binary.Options{PeerKnows: fps})
	_, got = later.send(t, nil, bytes.NewReader(m), 4096)
	requireSame(t, m, got, "the peer forgot: it says so and gets the shape in full")
	assert.Equal(t, 1, later.references)
	assert.Positive(t, later.full)
}

func TestLoadTriesStoredShapes(t *testing.T) {
	a := newEnd(binary.Options{})
	s, err := shape.Learn([]byte("<a><b>1</b></a>"))
	require.NoError(t, err)
	_, err = a.store.Put(t.Context(), s.Octets())
	require.NoError(t, err)
	a.book.Load(t.Context(), []binary.Fingerprint{s.Fingerprint(), {1, 2, 3}})
	assert.Equal(t, []binary.Fingerprint{s.Fingerprint()}, a.book.Known(5))
}

func TestStoreThatFailsMakesText(t *testing.T) {
	d := direction{from: newEnd(binary.Options{}), to: newEnd(binary.Options{})}
	d.from.store.broken = true
	_, got := d.send(t, nil, strings.NewReader("<a>1</a>"), 4096)
	assert.Equal(t, "<a>1</a>", string(got))
	assert.Equal(t, 1, d.texts)
	_, err := d.to.coder.Define(1, []byte("junk"))
	assert.ErrorIs(t, err, &binary.Error{Code: binary.BadShape})
	_, err = d.to.coder.Define(1, []byte("\x00junk"))
	assert.ErrorIs(t, err, &binary.Error{Code: binary.BadShape})
	d.to.store.broken = true
	s, err := shape.Learn([]byte("<a>1</a>"))
	require.NoError(t, err)
	fp, err := d.to.coder.Define(1, transit.Pack(nil, s.Octets(), nil))
	require.NoError(t, err, "what a stream needs is kept in memory")
	assert.Equal(t, binary.Fingerprint(s.Fingerprint()), fp)
	known, _ := d.to.coder.Known(1)
	assert.True(t, known)
}

// TestShapesThatTheStoreForgot: what a stream carried once is there for it as long as its table has room, also when book and store have forgotten it, and can still be told in full.
func TestShapesThatTheStoreForgot(t *testing.T) {
	d := direction{from: newEnd(binary.Options{}), to: newEnd(binary.Options{MaxShapes: 20})}
	d.from.coder.PeerLimits(4, 1<<20)
	forget := func(e *end) {
		for i := range 5000 { // more than a book has
			s, err := shape.Learn(fmt.Appendf(nil, "<other%d/>", i))
			require.NoError(t, err)
			_, err = e.book.Keep(s)
			require.NoError(t, err)
		}
		clear(e.store.octets)
	}
	epoch := func() {
		listed := map[uint64]bool{}
		d.from.coder.Epoch(nil, func(n uint64, _ binary.Fingerprint) { listed[n] = true })
		for n := range uint64(10) {
			if !listed[n] {
				d.to.coder.Forget(n)
			}
		}
	}
	kinds := func() {
		for i := range 8 {
			m := enveloped(fmt.Sprintf("<a><b%d>1</b%d></a>", i, i))
			_, got := d.send(t, nil, strings.NewReader(m), 4096)
			requireSame(t, []byte(m), got, m)
			for range 3 {
				epoch()
			}
		}
	}
	kinds()
	full, references := d.full, d.references
	forget(d.to)
	kinds()
	assert.Equal(t, full, d.full, "nothing is sent in full again")
	assert.Equal(t, references+8, d.references)
}

func TestTableLimitsAndEpochs(t *testing.T) {
	d := direction{from: newEnd(binary.Options{}), to: newEnd(binary.Options{MaxShapes: 4})}
	d.from.coder.PeerLimits(4, 1<<20)
	for i := range 40 {
		m := enveloped(fmt.Sprintf("<a><b%d>1</b%d></a>", i, i))
		_, got := d.send(t, nil, strings.NewReader(m), 4096)
		requireSame(t, []byte(m), got, m)
		d.from.coder.Epoch(nil, func(uint64, binary.Fingerprint) {})
	}
	assert.Less(t, d.texts, 10, "numbers not used for two epochs are given to other shapes")

	known, announced := d.to.coder.Known(99)
	assert.False(t, known || announced)
	_, err := d.to.coder.NewJoin(99)
	assert.ErrorIs(t, err, &binary.Error{Code: binary.Unannounced})
	few := newEnd(binary.Options{MaxShapes: 4}).coder
	for n := range uint64(16) { // so many any end takes
		_, err = few.Refer(n+1, binary.Fingerprint{9})
		require.NoError(t, err)
	}
	_, err = few.Refer(99, binary.Fingerprint{9})
	assert.ErrorIs(t, err, &binary.Error{Code: binary.Limits})
	few.Forget(1)
	_, err = few.Refer(99, binary.Fingerprint{9})
	require.NoError(t, err, "what is forgotten takes no room")
}

// A number that was announced on the word of the negotiation is kept however crowded the table is: the other end may still ask what it stands for.
func TestNumbersThatMayBeAskedForAreKept(t *testing.T) {
	known := newEnd(binary.Options{})
	_, _ = (&direction{from: known, to: newEnd(binary.Options{})}).send(t, nil, strings.NewReader(enveloped("<a><known>1</known></a>")), 4096)
	fps := known.book.Known(1)
	c := known.book.Coder(binary.Options{PeerKnows: fps})
	c.PeerLimits(4, 1<<20)
	use := func(m string) (number uint64) {
		require.NoError(t, c.Split(0, nil, strings.NewReader(enveloped(m)), 4096, func(_ bool, n uint64, _ bool, _ []byte) error {
			number = n
			return nil
		}))
		return number
	}
	n := use("<a><known>2</known></a>")
	fp, full, ok := c.Announce(n)
	require.True(t, ok)
	require.Nil(t, full)
	require.Equal(t, fps[0], fp)
	churn := func() {
		for i := range 20 {
			if other := use(fmt.Sprintf("<a><b%d>1</b%d></a>", i, i)); other > 0 {
				c.Announce(other)
			}
			c.Epoch(nil, func(uint64, binary.Fingerprint) {})
		}
	}
	churn()
	octets, err := c.Lacks(n)
	require.NoError(t, err)
	require.NotEmpty(t, octets)
	churn()
	other, err := c.Lacks(n)
	require.NoError(t, err)
	assert.NotEqual(t, octets, other, "what was sent in full is given up like any other; who still waits for it is told another shape")
	got, err := newEnd(binary.Options{}).coder.Define(n, other)
	require.NoError(t, err)
	assert.NotEqual(t, fp, got)
}

func TestEpochKeepsWhatWasUsedAgainAndWhatIsOpen(t *testing.T) {
	d := direction{from: newEnd(binary.Options{}), to: newEnd(binary.Options{})}
	numbers := func(open map[uint64]int) (list []uint64) {
		d.from.coder.Epoch(open, func(n uint64, _ binary.Fingerprint) { list = append(list, n) })
		return list
	}
	send := func(messages ...string) {
		for _, m := range messages {
			d.send(t, nil, strings.NewReader(enveloped(m)), 4096)
		}
	}
	send("<a>1</a>", "<a>2</a>", "<b>1</b>", "<b>2</b>", "<c>1</c>", "<d>1</d>")
	assert.Equal(t, []uint64{1, 2, 4}, numbers(map[uint64]int{4: 1}), "used more than once, or open")
	send("<b>3</b>", "<b>4</b>", "<a>3</a>")
	assert.Equal(t, []uint64{2}, numbers(nil))
	before := d.references
	send("<a>4</a>", "<b>5</b>", "<c>2</c>")
	assert.Equal(t, before+2, d.references, "what the epoch did not list is announced again, by reference")
}

// A message whose split went on for epochs is queued at its end, maybe after the open ones were counted: its number is not given up by the epoch that follows.
func TestEpochKeepsWhatALongSplitUses(t *testing.T) {
	c := newEnd(binary.Options{}).coder
	c.PeerLimits(1, 1<<20)
	none := func(uint64, binary.Fingerprint) {}
	require.NoError(t, c.Split(0, nil, strings.NewReader(enveloped("<a>1</a>")), 4096, func(_ bool, n uint64, _ bool, _ []byte) error {
		require.Equal(t, uint64(1), n)
		for range 3 {
			c.Epoch(nil, none)
		}
		return nil
	}))
	c.Epoch(nil, none)
	kept, err := c.Lacks(1)
	require.NoError(t, err)
	c.Epoch(nil, none)
	c.Epoch(nil, none)
	other, err := c.Lacks(1)
	require.NoError(t, err)
	assert.NotEqual(t, kept, other, "but later")
}

func TestConcurrentSplits(t *testing.T) {
	d := direction{from: newEnd(binary.Options{})}
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 200 {
				m := fmt.Sprintf("<k%d><v>%d</v></k%d>", (w+i)%20, i, (w+i)%20)
				err := d.from.coder.Split(0, nil, strings.NewReader(m), 4096, func(bool, uint64, bool, []byte) error { return nil })
				assert.NoError(t, err)
			}
		})
	}
	wg.Wait()
	assert.Len(t, d.from.store.octets, 20)
}
