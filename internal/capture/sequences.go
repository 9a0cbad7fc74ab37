package capture

import (
	"container/list"
	"net/netip"
	"slices"
	"strings"

	"github.com/hhfr/hhfr/pkg/wsrm/header"
)

// SequenceSeen is what a capture shows of a sequence of WS-ReliableMessaging, in plain SOAP and in
// streams.
type SequenceSeen struct {
	// Identifier is that of the sequence, or its first KiB; empty: faults that name none. Version
	// is 1.0 or 1.1.
	Identifier, Version string
	// Messages is how many numbers were seen, Highest the highest of them. Gaps are those below it
	// that were not, as runs of first and last numbers; Missing is how many these are.
	Messages, Highest, Missing uint64
	Gaps                       [][2]uint64
	// Resent is how many messages were sent again on a hop that they had been seen on before.
	Resent int
	// Hops is how many hops its messages were seen on: between client and proxy, and so on.
	Hops int
	// Acknowledged are the runs of numbers of all acknowledgements, AcknowledgedTo the number up to
	// which there is no hole in them. Nacks is how many numbers were asked for again.
	Acknowledged   [][2]uint64
	AcknowledgedTo uint64
	Nacks          int
	// Created, or offered, Closed and Terminated: it was, by a message of the capture. Last is the
	// number of the message that said to be the last one (1.0), or that CloseSequence or
	// TerminateSequence names.
	Created, Closed, Terminated bool
	Last                        uint64
	// Faults are the codes of the faults about it, with how often they came.
	Faults map[string]int
}

const (
	// maxTracked bounds the sequences that are followed at once: those that were mentioned last.
	maxTracked = 1024
	// maxSendings bounds the messages, of all sequences, whose first places are remembered.
	maxSendings = 1 << 15
	// maxHops bounds the hops of one sequence that are told apart.
	maxHops = 8
	// maxIdentifier bounds what is kept of an identifier, in bytes.
	maxIdentifier = 1 << 10
	// maxFaultCodes bounds the codes of faults that are counted for one sequence.
	maxFaultCodes = 16
)

// hop is one of the ways from an end to the next, by the end that takes connections: to it, or
// back.
type hop struct {
	server     netip.AddrPort
	hhfr, back bool
}

type trackedSequence struct {
	SequenceSeen
	numbers, acked numberSet
	hops           map[hop]*numberSet
	element        *list.Element
}

type sendingKey struct {
	of     *trackedSequence
	hop    hop
	number uint64
}

// sequenceTracker follows the sequences of a capture.
type sequenceTracker struct {
	byID    map[string]*trackedSequence
	recent  list.List // of *trackedSequence, by their last mention
	order   []*trackedSequence
	dropped int

	sendings map[sendingKey]EarlierSending
	oldest   []sendingKey // a ring, once it is full
	at       int
}

// Sequences are the sequences of WS-ReliableMessaging that were seen, in the order of their first
// mention. dropped is how many more there were: those that were not mentioned for the longest time.
func (s *Summary) Sequences() (list []SequenceSeen, dropped int) {
	for _, t := range s.sequences.order {
		one := t.SequenceSeen
		one.Messages, one.Highest, one.Hops = t.numbers.count(), t.numbers.highest(), len(t.hops)
		one.Gaps = t.numbers.gaps()
		one.Missing = one.Highest - one.Messages
		one.Acknowledged, one.AcknowledgedTo = slices.Clone(t.acked.spans), t.acked.upTo()
		list = append(list, one)
	}
	return list, s.sequences.dropped
}

// sequence finds what is known of a sequence, or begins with it.
func (k *sequenceTracker) sequence(id, version string) *trackedSequence {
	id = id[:min(len(id), maxIdentifier)]
	t := k.byID[id]
	if t != nil {
		k.recent.MoveToBack(t.element)
		return t
	}
	if k.byID == nil {
		k.byID = map[string]*trackedSequence{}
	}
	if len(k.byID) >= maxTracked {
		k.drop(k.recent.Front().Value.(*trackedSequence))
	}
	id = strings.Clone(id)
	t = &trackedSequence{SequenceSeen: SequenceSeen{Identifier: id, Version: version}, hops: map[hop]*numberSet{}}
	t.element = k.recent.PushBack(t)
	k.byID[id] = t
	k.order = append(k.order, t)
	return t
}

func (k *sequenceTracker) drop(t *trackedSequence) {
	k.dropped++
	delete(k.byID, t.Identifier)
	k.recent.Remove(t.element)
	k.order = slices.DeleteFunc(k.order, func(o *trackedSequence) bool { return o == t })
}

// note takes in what a message says of sequences, and whether it was sent before.
func (k *sequenceTracker) note(d *Decoded) {
	b := d.Reliable
	if b == nil {
		return
	}
	if b.Number > 0 {
		d.Earlier = k.numbered(k.sequence(b.Sequence, b.Version), d)
	}
	k.controls(b)
	for _, id := range b.AckRequested {
		k.sequence(id, b.Version)
	}
	for i := range b.Acknowledgements {
		a := &b.Acknowledgements[i]
		t := k.sequence(a.Sequence, b.Version)
		for _, run := range a.Ranges {
			t.acked.add(run[0], run[1])
		}
		t.Nacks += len(a.Nacks)
		t.Closed = t.Closed || a.Final
	}
	if b.Fault != "" {
		t := k.sequence(d.faulted, b.Version)
		if t.Faults == nil {
			t.Faults = map[string]int{}
		}
		if _, known := t.Faults[b.Fault]; known || len(t.Faults) < maxFaultCodes {
			t.Faults[strings.Clone(b.Fault[:min(len(b.Fault), maxIdentifier)])]++
		}
	}
}

// numbered takes in a message with a number, and returns its first sending if this is not it.
func (k *sequenceTracker) numbered(t *trackedSequence, d *Decoded) *EarlierSending {
	number := d.Reliable.Number
	if d.Reliable.Last {
		t.Last = number
	}
	t.numbers.add(number, number)
	key := sendingKey{t, hop{d.Server(), d.HHFR, d.Reply}, number}
	seen := t.hops[key.hop]
	if seen == nil {
		if len(t.hops) >= maxHops {
			return nil
		}
		seen = &numberSet{}
		t.hops[key.hop] = seen
	}
	if seen.add(number, number) == 0 {
		t.Resent++
		earlier := k.sendings[key]
		return &earlier
	}
	k.remember(key, EarlierSending{d.Number, d.Packet})
	return nil
}

// remember remembers a first sending, in place of the oldest one if there are too many.
func (k *sequenceTracker) remember(key sendingKey, e EarlierSending) {
	if k.sendings == nil {
		k.sendings = map[sendingKey]EarlierSending{}
	}
	if len(k.oldest) < maxSendings {
		k.oldest = append(k.oldest, key)
	} else {
		delete(k.sendings, k.oldest[k.at])
		k.oldest[k.at] = key
		k.at = (k.at + 1) % maxSendings
	}
	k.sendings[key] = e
}

// controls takes in what creates, closes and terminates.
func (k *sequenceTracker) controls(b *header.Blocks) {
	switch b.Control {
	case "CreateSequence":
		if b.Terms != nil && b.Terms.Offer != nil {
			k.sequence(b.Terms.Offer.Sequence, b.Version).Created = true
		}
	case "CreateSequenceResponse":
		k.sequence(b.Sequence, b.Version).Created = true
	case "CloseSequence", "CloseSequenceResponse":
		t := k.sequence(b.Sequence, b.Version)
		t.Closed, t.Last = true, max(t.Last, b.LastNumber)
	case "TerminateSequence", "TerminateSequenceResponse":
		t := k.sequence(b.Sequence, b.Version)
		t.Terminated, t.Last = true, max(t.Last, b.LastNumber)
	}
}
