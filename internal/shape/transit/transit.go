// Package transit makes the serializations of shapes small for their way to the peer
// (docs/wire-format.md, section 4.1): folded, so that nothing is said twice that markup says twice,
// then DEFLATE (RFC 1951) with a vocabulary of SOAP and its relatives before it, and another shape
// that both ends hold, the base.
//
// A shape has no values of messages, so that what is packed tells nothing about them. Nothing is
// remembered from one shape to the next: the base is named.
package transit

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // vocabulary.txt
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/flate"

	"github.com/hhfr/hhfr/internal/bin"
)

// vocabulary stands before every base. It is what scripts/vocabulary.py prints, and part of the
// wire format: a change of one byte makes another format.
//
//go:embed vocabulary.txt
var vocabulary []byte

// Vocabulary is the bytes that stand before every shape, and before the texts of a lane. Nobody
// changes them.
func Vocabulary() []byte { return vocabulary }

const (
	// MaxOctets bounds a serialization, before it is packed: as internal/shape does.
	MaxOctets = 1 << 20
	// Bases is how many shapes are bases: those announced in full last in a direction. Kinds of
	// messages that are alike come close to each other.
	Bases = 16
	// MaxBased bounds the packed form of a base, and of a shape on a base, in bytes. So short ones
	// are not interleaved with others, so that both ends agree on what came before.
	MaxBased = 4096
	// MaxBase bounds the serialization of a base, in bytes: DEFLATE looks back no further, and a
	// receiver keeps them all.
	MaxBase = window
	// maxStyle is how long the text of a style may be, in bytes, as package style has it.
	maxStyle = 255
	// window is how far back DEFLATE reaches, in bytes; of what stands before a shape, the rest
	// counts for nothing.
	window = 32 << 10

	deflated = 1 << 0 // folded, and deflated
	based    = 1 << 1 // a base is named
	checked  = 1 << 2 // behind the base stand CheckBytes
	styled   = 1 << 3 // the base is the own shape of a description, in a style
	flags    = deflated | based | checked | styled
)

// Name names a base: the first bytes of its fingerprint.
type Name [8]byte

// NameOf names a shape by its fingerprint.
func NameOf(fingerprint [sha256.Size]byte) Name { return Name(fingerprint[:len(Name{})]) }

func (n Name) String() string { return fmt.Sprintf("%x…", n[:]) }

// OwnName names the own shape of a description: the first bytes of its fingerprint. It is shorter
// than a [Name], since few shapes are own shapes, and [CheckBytes] tell whether it was the right
// one.
type OwnName [3]byte

// CheckBytes are the first bytes of the fingerprint of a shape whose base the peer may lack: they
// tell what comes in answer to a question from what comes for other reasons.
type CheckBytes [3]byte

// CheckOf is the check of a shape, by its fingerprint.
func CheckOf(fingerprint [sha256.Size]byte) CheckBytes {
	return CheckBytes(fingerprint[:len(CheckBytes{})])
}

// OwnNameOf names an own shape by its fingerprint.
func OwnNameOf(fingerprint [sha256.Size]byte) OwnName { return OwnName(fingerprint[:len(OwnName{})]) }

func (n OwnName) String() string { return fmt.Sprintf("%x…", n[:]) }

// Own is the own shape of a description, as a base: both ends make it of their description, and
// neither announces it (package style).
type Own struct {
	Name  OwnName
	Style string // at most 255 bytes
	// Octets is its serialization in the style.
	Octets []byte
}

// BaseFinder finds bases by their names. Its methods return nil if this end has none.
type BaseFinder interface {
	// Base returns the serialization of a shape that was announced.
	Base(name Name) []byte
	// Styled returns the serialization of an own shape in a style.
	Styled(name OwnName, style string) []byte
}

// Code tells kinds of [Error] apart.
type Code uint8

const (
	// Malformed: bytes that nothing packs to.
	Malformed Code = iota + 1
	// TooLarge: a serialization beyond [MaxOctets].
	TooLarge
	// NoBase: this end lacks the base.
	NoBase
)

var codeNames = map[Code]string{Malformed: "malformed packed shape", TooLarge: "packed shape over the limit",
	NoBase: "packed shape whose base is not here"}

func (c Code) String() string { return codeNames[c] }

// Error is the error of this package.
type Error struct {
	Code    Code
	Base    string // of NoBase: the beginning of its fingerprint
	Own     bool   // of NoBase: it is the own shape of a description
	Checked bool   // of NoBase: there are CheckBytes
	Check   CheckBytes
	Err     error
}

func (e *Error) Error() string {
	switch {
	case e.Code == NoBase:
		return e.Code.String() + ": " + e.Base
	case e.Err != nil:
		return e.Code.String() + ": " + e.Err.Error()
	}
	return e.Code.String()
}

// Is compares codes.
func (e *Error) Is(t error) bool { o, ok := t.(*Error); return ok && o.Code == e.Code }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// shapePacker is a compressor with its buffers, which are far larger than most shapes.
type shapePacker struct {
	w      *flate.Writer
	before []byte
	out    bytes.Buffer
}

var packers = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.BestCompression)
	if err != nil {
		panic(err) // the level is one that the package names
	}
	return &shapePacker{w: w}
}}

// Pack appends the packed form of a serialization to dst. base is another shape's serialization,
// nil for none; it is left out where the packed form is longer than [MaxBased] with it, or where it
// has no folded form. What has none itself, or does not get smaller, stays as it is. It may be
// called concurrently.
func Pack(dst, octets, base []byte) []byte {
	name := NameOf(sha256.Sum256(base))
	return packOn(dst, octets, base, append([]byte{deflated | based}, name[:]...))
}

// PackChecked is [Pack] for a receiver that may lack the base, and then asks.
func PackChecked(dst, octets, base []byte) []byte {
	name, check := NameOf(sha256.Sum256(base)), CheckOf(sha256.Sum256(octets))
	return packOn(dst, octets, base, slices.Concat([]byte{deflated | based | checked}, name[:], check[:]))
}

// PackOwn is [Pack] with the own shape of a description as base, which the receiver may lack.
func PackOwn(dst, octets []byte, own *Own) []byte {
	check := CheckOf(sha256.Sum256(octets))
	header := slices.Concat([]byte{deflated | based | checked | styled}, own.Name[:], check[:])
	return packOn(dst, octets, own.Octets, bin.AppendBytes(header, []byte(own.Style)))
}

// packOn packs behind a header, if base has a folded form.
func packOn(dst, octets, base, header []byte) []byte {
	folded, ok := fold(octets)
	if back, err := unfold(folded); !ok || err != nil || !bytes.Equal(back, octets) {
		return append(append(dst, 0), octets...)
	}
	if before, ok := fold(base); ok {
		if packed := pack(append(dst, header...), folded, before); len(packed)-len(dst) <= min(MaxBased, len(octets)) {
			return packed
		}
	}
	if packed := pack(append(dst, deflated), folded, nil); len(packed)-len(dst) <= len(octets) {
		return packed
	}
	return append(append(dst, 0), octets...)
}

// pack appends a folded form, deflated behind vocabulary and base.
func pack(dst, folded, base []byte) []byte {
	p := packers.Get().(*shapePacker)
	defer packers.Put(p)
	p.before = append(append(p.before[:0], vocabulary...), base...)
	p.out.Reset()
	p.w.ResetDict(&p.out, p.before[max(0, len(p.before)-window):])
	_, err := p.w.Write(folded)
	if err = errors.Join(err, p.w.Close()); err != nil {
		panic(err) // a bytes.Buffer takes everything
	}
	return append(dst, p.out.Bytes()...)
}

// Unpack gives back the serialization that was packed, in memory of its own; whether it is a shape
// is for others to say. bases may be nil: this end has none. Errors are of type [Error]. It may be
// called concurrently. Memory and work are bounded by [MaxOctets] whatever comes.
func Unpack(packed []byte, bases BaseFinder) ([]byte, error) {
	cur := bin.NewCursor(packed, 0)
	form := cur.U8()
	if err := cur.Err(); err != nil {
		return nil, &Error{Code: Malformed, Err: err}
	}
	if form == 0 {
		if cur.Len() > MaxOctets {
			return nil, &Error{Code: TooLarge}
		}
		return bytes.Clone(packed[1:]), nil
	}
	if form&deflated == 0 || form&^flags != 0 || form&based != 0 && len(packed) > MaxBased ||
		form&based == 0 && form != deflated || form&(styled|checked) == styled {
		return nil, &Error{Code: Malformed, Err: fmt.Errorf("form %d", form)}
	}
	if form&based == 0 {
		return unpack(cur.Rest(), nil)
	}
	base, missing := find(&cur, form, bases)
	if err := cur.Err(); err != nil {
		return nil, &Error{Code: Malformed, Err: err}
	}
	if base == nil {
		return nil, missing
	}
	octets, err := unpack(cur.Rest(), base)
	if missing.Checked && missing.Check != CheckOf(sha256.Sum256(octets)) {
		return nil, missing // it was another base of that name
	}
	return octets, err
}

// find reads which base a packed form stands on, and finds it; missing is the error if it is nil.
func find(cur *bin.Cursor, form byte, bases BaseFinder) (base []byte, missing *Error) {
	missing = &Error{Code: NoBase, Own: form&styled != 0, Checked: form&checked != 0}
	var name Name
	var ownName OwnName
	if missing.Own {
		copy(ownName[:], cur.Take(len(ownName)))
		missing.Base = ownName.String()
	} else {
		copy(name[:], cur.Take(len(name)))
		missing.Base = name.String()
	}
	if missing.Checked {
		copy(missing.Check[:], cur.Take(len(missing.Check)))
	}
	var style string
	if missing.Own {
		style = string(cur.Bytes(maxStyle))
	}
	switch {
	case cur.Err() != nil || bases == nil:
	case missing.Own:
		base = bases.Styled(ownName, style)
	default:
		base = bases.Base(name)
	}
	return base, missing
}

// unpack inflates what stands on a base, nil for none, and unfolds it.
func unpack(octets, base []byte) ([]byte, error) {
	before := vocabulary
	if base != nil {
		folded, ok := fold(base)
		if !ok {
			return nil, &Error{Code: Malformed, Err: fmt.Errorf("base: %w", errFold)}
		}
		before = append(bytes.Clone(vocabulary), folded...)
	}
	folded, err := inflate(octets, before)
	if err != nil {
		return nil, err
	}
	return unfold(folded)
}

// inflate gives at most [MaxOctets] bytes, in memory that grows with what comes.
func inflate(octets, before []byte) ([]byte, error) {
	in := bytes.NewReader(octets)
	r := flate.NewReaderDict(in, before[max(0, len(before)-window):])
	var out bytes.Buffer
	n, err := io.Copy(&out, io.LimitReader(r, MaxOctets+1))
	switch {
	case err != nil:
		return nil, &Error{Code: Malformed, Err: err}
	case n > MaxOctets:
		return nil, &Error{Code: TooLarge}
	case in.Len() > 0:
		return nil, &Error{Code: Malformed, Err: fmt.Errorf("%d octets left over", in.Len())}
	}
	return out.Bytes(), nil
}
