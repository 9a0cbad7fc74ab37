package main

import (
	"bytes"
	"fmt"
	"runtime"

	"github.com/hhfr/hhfr/internal/shape/columns"
	"github.com/hhfr/hhfr/internal/shape/program"
)

// The contestants that do what stages add to split and join: with the memory of a lane, and for
// each message alone.
const (
	pack          = "pack"
	unpack        = "unpack"
	packColumns   = "pack, columns alone"
	unpackColumns = "unpack, columns alone"
)

// syncOctets is the approximate number of bytes between two syncs, which empty the memories.
const syncOctets = 64 << 10

// segments is one message's segment, or several.
type segments []segment

type segment struct {
	octets []byte
	text   bool
}

// packing packs message after message as a lane does, receiver unpacks them.
type packing struct {
	packer columns.Packer
	memory columns.Memory
	at     columns.Packing
	out    []byte
	octets int // since the memory was emptied
}

type unpacking struct {
	unpacker columns.Unpacker
	memory   columns.Memory
	at       columns.Packing
	out      []byte
}

// message packs a message, segment by segment; took is called with each.
func (s *packing) message(p *program.Program, c segments, alone bool, took func(i int, packed []byte)) {
	s.at.Reset()
	switch {
	case alone || len(c) > 1:
		s.memory.Reset()
		s.octets = 0
	case s.octets > syncOctets:
		s.memory, s.octets = columns.Memory{}, 0
	}
	for i, seg := range c {
		s.out = s.packer.Pack(s.out[:0], p, &s.at, &s.memory, seg.octets, i == len(c)-1, segmentOctets)
		s.octets += len(s.out)
		took(i, s.out)
	}
}

func (r *unpacking) message(p *program.Program, packed [][]byte, reset bool) (err error) {
	r.at.Reset()
	if reset {
		r.memory.Reset()
	}
	for i, octets := range packed {
		if r.out, err = r.unpacker.Unpack(r.out[:0], p, &r.at, &r.memory, octets, i == len(packed)-1,
			segmentOctets); err != nil {
			return err
		}
	}
	return nil
}

// packedMessage is a message as it travels.
type packedMessage struct {
	segments [][]byte
	reset    bool // the memory is emptied before
}

// packAll packs all messages in their order, again and again until a sync would come, and checks
// that they are restored.
func packAll(p *program.Program, contents []segments, alone bool) (list []packedMessage, err error) {
	var s packing
	var r unpacking
	for i := 0; i < len(contents) || s.octets > 0 && s.octets <= syncOctets; i++ {
		c := contents[i%len(contents)]
		m := packedMessage{reset: i == 0 || alone || len(c) > 1}
		s.message(p, c, alone, func(_ int, packed []byte) { m.segments = append(m.segments, bytes.Clone(packed)) })
		m.reset = m.reset || s.octets == len(m.segments[0])
		if err := r.message(p, m.segments, m.reset); err != nil {
			return nil, err
		}
		if last := c[len(c)-1]; !bytes.Equal(r.out, last.octets) {
			return nil, fmt.Errorf("message %d is not unpacked to what it was", i+1)
		}
		list = append(list, m)
		if i >= len(contents)-1 && (alone || len(c) > 1) {
			break
		}
	}
	return list, nil
}

// addPacking adds the time of packing and unpacking. Messages are unpacked in the order in which
// they were packed, whatever number is requested.
func (c *contest) addPacking(p *program.Program, contents []segments) error {
	for _, way := range []struct {
		pack, unpack string
		alone        bool
	}{{pack, unpack, false}, {packColumns, unpackColumns, true}} {
		list, err := packAll(p, contents, way.alone)
		if err != nil {
			return err
		}
		s, r, next := new(packing), new(unpacking), 0
		c.add(way.pack, false, func(i int) error {
			s.message(p, contents[i], way.alone, func(int, []byte) {})
			return nil
		})
		c.add(way.unpack, false, func(int) error {
			m := &list[next]
			next = (next + 1) % len(list)
			return r.message(p, m.segments, m.reset)
		})
	}
	list, err := packAll(p, contents, false)
	if err != nil {
		return err
	}
	c.room = measureRoom(p, contents, list)
	return nil
}

// room is the memory of stages, in bytes: the packer or unpacker in use, and the memory of each
// lane.
type room struct {
	Packer   uint64 `json:"packer"`
	Unpacker uint64 `json:"unpacker"`
	Sends    uint64 `json:"lane_sends"`
	Receives uint64 `json:"lane_receives"`
}

// measureRoom counts what is reachable before and after.
func measureRoom(p *program.Program, contents []segments, list []packedMessage) (r room) {
	s, u := new(packing), new(unpacking)
	send := func() {
		for i := range list {
			s.message(p, contents[i%len(contents)], false, func(int, []byte) {})
		}
	}
	receive := func() {
		for i := range list {
			_ = u.message(p, list[i].segments, list[i].reset || i == 0) // it was restored before
		}
	}
	empty := heap()
	send()
	s.memory.Reset()
	packer := heap()
	receive()
	u.memory.Reset()
	unpacker := heap()
	send()
	sends := heap()
	receive()
	receives := heap()
	runtime.KeepAlive(s)
	runtime.KeepAlive(u)
	runtime.KeepAlive(list)
	return room{Packer: less(packer, empty), Unpacker: less(unpacker, packer), Sends: less(sends, unpacker),
		Receives: less(receives, sends)}
}

// heap is the size of what is reachable, in bytes. The content of pools is freed by the third
// collection.
func heap() uint64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func less(a, b uint64) uint64 { return max(a, b) - b }
