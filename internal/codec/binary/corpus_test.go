package binary_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/wire"
)

const allStages = wire.Columns | wire.Memory | wire.Zstd | wire.Plain

// announcing are the options of ends that announce every shape.
var announcing = binary.Options{Without: wire.Plain}

// TestShuffledOnTheCorpus: all messages in no order, as one sequence.
func TestShuffledOnTheCorpus(t *testing.T) {
	paths := shared.SomeMessages(t)
	rand.New(rand.NewPCG(11, 12)).Shuffle(len(paths), func(i, k int) { paths[i], paths[k] = paths[k], paths[i] })
	d := newDirection(t, binary.Options{})
	for _, path := range paths {
		message := shared.Read(t, path)
		_, got := d.stream(t, nil, bytes.NewReader(message), 4096)
		requireSame(t, message, got, path)
	}
}

func TestCorpusTwice(t *testing.T) {
	for _, most := range []int{4096, 16384 - 64, 480}[:shared.Some(3)] {
		d := newDirection(t, announcing)
		before := 0
		for round := range 3 {
			octets := 0
			for i, path := range shared.SomeMessages(t) {
				message := shared.Read(t, path)
				octets += len(message)
				head := fmt.Appendf(nil, "POST /echo HTTP/1.1\r\nContent-Type: text/xml\r\nX-Number: %d\r\n\r\n", i)
				gotHead, gotBody := d.stream(t, head, bytes.NewReader(message), most)
				requireSame(t, head, gotHead, path)
				requireSame(t, message, gotBody, path)
			}
			if round == 2 {
				assert.Equal(t, before, d.full, "no new shape: those of bodies shorter than a shape came before")
			}
			before = d.full
			t.Logf("round %d: %d octets; shapes %d, content %d, texts %d", round+1, octets, d.full, d.content, d.texts)
		}
		for fp := range d.to.store.octets {
			assert.Contains(t, d.from.store.octets, fp, "a shape is in the stores of both ends")
		}
		assert.Greater(t, 20*len(d.to.store.octets), 16*len(d.from.store.octets),
			"hardly a shape is not worth to be sent, but those of long texts")
	}
}

// TestCorpusPackedAndShuffled: the messages of the corpus in any order, on lanes, with syncs
// between them and lanes that begin anew or are idle, by every set of stages.
func TestCorpusPackedAndShuffled(t *testing.T) {
	var messages [][]byte
	for _, path := range shared.SomeMessages(t) {
		messages = append(messages, shared.Read(t, path))
	}
	rnd := rand.New(rand.NewPCG(9, 10))
	for without := range allStages + 1 {
		d := newDirection(t, binary.Options{Without: without})
		rnd.Shuffle(len(messages), func(i, j int) { messages[i], messages[j] = messages[j], messages[i] })
		for i, m := range messages {
			if without != 0 && len(m) > 1<<20 {
				continue // half of all bytes: the set of all stages has them
			}
			lane := rnd.Uint64N(4)
			switch i % 40 {
			case 39:
				d.sync(t)
			case 20:
				d.enc.Restart(lane)
			case 30, 35:
				d.enc.Rest(d.now)
				d.read(t, nil)
			case 5, 6, 13:
				d.dec.Rest()
			}
			d.onLane(t, lane, m)
		}
		t.Logf("without %d: content %d, as it travels %d", without, d.content, d.payload)
		switch {
		case shared.Raced: // too few messages
		case without&wire.Zstd == 0:
			assert.Less(t, d.payload, d.content*11/20)
		case without&wire.Columns == 0:
			assert.Less(t, d.payload, d.content*9/10)
		}
	}
}

// TestRecordsOfTheCorpusAreColumns: the longest arrays of the corpus take less than their
// bit-packed EXI, without any memory between messages, and less than their compressed one with
// zstd behind it.
func TestRecordsOfTheCorpusAreColumns(t *testing.T) {
	dir := shared.Dir(t, "corpus", "messages", "soap11", "jtlm")
	for _, c := range []struct {
		name    string
		without uint64
		most    int
	}{
		{"publish100.xml", wire.Memory | wire.Zstd, 9511},
		{"publish911.xml", wire.Memory | wire.Zstd, 86000},
		{"publish100.xml", wire.Memory, 2047},
		{"publish911.xml", wire.Memory, 15000},
	} {
		d := newDirection(t, binary.Options{Without: c.without})
		message := shared.Read(t, filepath.Join(dir, c.name))
		d.onLane(t, 1, message)
		assert.LessOrEqual(t, d.payload, c.most, c.name)
		t.Logf("%s without %d: %d octets, content %d, frames %d", c.name, c.without, len(message), d.content, d.payload)
	}
}

// TestUnlikeOnTheCorpus: the XML messages of the corpus, hardly two of a kind, once each on one
// lane, in order and in no order. One stream of zstd at level 19, flushed behind each message, has
// some 780 bytes a message, and 80 MB of state.
func TestUnlikeOnTheCorpus(t *testing.T) {
	var messages [][]byte
	for _, path := range shared.Messages(t) {
		if filepath.Ext(path) == ".xml" {
			messages = append(messages, shared.Read(t, path))
		}
	}
	for seed := range uint64(shared.Some(3)) {
		if seed > 0 {
			rnd := rand.New(rand.NewPCG(seed, 1))
			rnd.Shuffle(len(messages), func(i, k int) { messages[i], messages[k] = messages[k], messages[i] })
		}
		d := newDirection(t, binary.Options{})
		for _, m := range messages {
			d.onLane(t, 1, m)
		}
		each := (d.payload + d.full + d.references) / len(messages)
		t.Logf("order %d: %d bytes a message", seed, each)
		assert.Less(t, each, 720)
	}
}
