// Package shape is the heart of hhfr: message = shape ⊕ content (docs/architecture.md).
//
// A [Shape] is what stays the same from one message of a kind to the next: structure, the types of
// values, and the exact text around them. It is immutable and named by the SHA-256 of its
// serialization (docs/wire-format.md, section 9). It comes from a tree ([New]), from a
// serialization ([Parse]), from whoever tells a [Builder] what stands in it, or from messages
// (package learn). Package program takes content out of messages by it and puts them together
// again; package columns packs that content; package transit packs shapes themselves.
//
// Shapes may be used concurrently.
package shape

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync/atomic"

	"github.com/hhfr/hhfr/internal/bin"
)

// Fingerprint names a shape: SHA-256 over its serialization.
type Fingerprint [sha256.Size]byte

// URIPrefix is what the URI of every shape begins with.
const URIPrefix = "urn:hhfr:shape:sha256:"

// URI is the name under which context stores keep the shape.
func (f Fingerprint) URI() string { return URIPrefix + hex.EncodeToString(f[:]) }

// String gives the first eight digits, for people.
func (f Fingerprint) String() string { return hex.EncodeToString(f[:4]) }

// Shape is an immutable, canonical tree with its serialization.
type Shape struct {
	root        *Node
	slots       int
	nodes       int
	octets      []byte
	fingerprint Fingerprint
	packed      atomic.Pointer[[]byte]
}

// Packed returns what pack makes of the serialization, which it is asked for once: most streams
// announce the same shapes. Neither must be changed. It may be called concurrently, always with the
// same pack.
func (s *Shape) Packed(pack func(octets []byte) []byte) []byte {
	if p := s.packed.Load(); p != nil {
		return *p
	}
	p := pack(s.octets)
	s.packed.Store(&p)
	return p
}

// Root is the root node; it must not be changed.
func (s *Shape) Root() *Node { return s.root }

// Slots is how many prefix slots the shape has.
func (s *Shape) Slots() int { return s.slots }

// Nodes is about how many nodes the tree has, never fewer than there are.
func (s *Shape) Nodes() int { return s.nodes }

// Octets is the canonical serialization; it must not be changed.
func (s *Shape) Octets() []byte { return s.octets }

// Fingerprint names the shape.
func (s *Shape) Fingerprint() Fingerprint { return s.fingerprint }

// New makes a shape of a tree: it brings the tree into canonical form (merges texts, unfolds
// sequences, numbers slots in order of appearance) and checks it. The tree is not changed. Errors
// are of type [Error], code Invalid or TooLarge.
func New(root *Node) (*Shape, error) {
	tree := canonical(root)
	renumberSlots(tree)
	octets, err := serialize(tree)
	if err != nil {
		return nil, err
	}
	return parse(octets, 0)
}

// Parse reads a serialization and refuses whatever is not canonical; what it accepts serializes to
// the same bytes. Errors are of type [Error], code Invalid or TooLarge.
func Parse(octets []byte) (*Shape, error) {
	return parse(append([]byte(nil), octets...), 0)
}

// parse keeps the bytes. Nodes is how many there are at most, if that is known.
func parse(octets []byte, nodes int) (*Shape, error) {
	if len(octets) > maxSerialization {
		what := fmt.Sprintf("shape of %d octets, most are %d", len(octets), maxSerialization)
		return nil, &Error{Code: TooLarge, What: what}
	}
	p := parser{
		cur: bin.NewCursor(octets, 0), text: string(octets),
		stack: make([]*Node, 0, 64), room: make([]Node, nodes), kidRoom: make([]*Node, nodes),
	}
	if v := p.cur.U8(); v != version {
		p.fail(fmt.Sprintf("version %d, not %d", v, version))
	}
	p.slots = p.cur.Count(MaxSlots)
	root := p.node(0, 0)
	if p.cur.Err() == nil && p.cur.Len() > 0 {
		p.fail("octets after the root node")
	}
	if p.cur.Err() == nil && p.seen != p.slots {
		p.fail(fmt.Sprintf("%d slots announced, %d used", p.slots, p.seen))
	}
	if err := p.cur.Err(); err != nil {
		return nil, invalid(err)
	}
	s := &Shape{root: root, slots: p.slots, nodes: p.nodes, octets: octets}
	s.fingerprint = sha256.Sum256(s.octets)
	return s, nil
}
