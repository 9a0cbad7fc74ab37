package ctxstore

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// ShapePrefix begins the URI of every shape (docs/wire-format.md, section 9).
	ShapePrefix = "urn:hhfr:shape:sha256:"
	// SessionPrefix begins the URI of every session.
	SessionPrefix = "urn:hhfr:session:"
	// SequencePrefix begins the URI of every sequence.
	SequencePrefix = "urn:hhfr:sequence:"
	// FragmentPrefix begins the URI of every fragment of messages (docs/context.md, section 7).
	FragmentPrefix = "urn:hhfr:fragment:"
	// ScopePrefix begins the URI of the entry that names the session of a fragment's scope.
	ScopePrefix = "urn:hhfr:scope:"
	// LentPrefix begins the URI of the entry in which an end keeps what it has put into a common
	// store.
	LentPrefix = "urn:hhfr:lent:"
	// AgreedPrefix begins the URIs of what was agreed on in a session, for third parties.
	AgreedPrefix = "urn:hhfr:agreed:"
	// HoldPrefix begins the URI of the entry by which a user on another machine holds an entry.
	HoldPrefix = "urn:hhfr:hold:"
)

// ShapeURI returns the URI of the shape with this fingerprint.
func ShapeURI(fp [32]byte) string { return ShapePrefix + hex.EncodeToString(fp[:]) }

// SessionURI returns the URI of the session with this identity.
func SessionURI(id [16]byte) string { return SessionPrefix + hex.EncodeToString(id[:]) }

// SequenceURI returns the URI of the sequence with this identity.
func SequenceURI(id [16]byte) string { return SequencePrefix + hex.EncodeToString(id[:]) }

// ParseShapeURI returns the fingerprint in a shape's URI. Only the form that [ShapeURI] writes is
// accepted: 64 digits in lower case.
func ParseShapeURI(uri string) (fp [32]byte, ok bool) {
	digits, ok := strings.CutPrefix(uri, ShapePrefix)
	if !ok || len(digits) != 2*len(fp) || strings.ToLower(digits) != digits {
		return fp, false
	}
	_, err := hex.Decode(fp[:], []byte(digits))
	return fp, err == nil
}

// CheckURI is for engines. It refuses, with [Invalid], a URI that is empty, longer than [MaxURI],
// not UTF-8, has white space or control characters, or begins like a shape's and is not one.
func CheckURI(uri string) error {
	switch {
	case uri == "":
		return invalid(uri, errors.New("the URI is empty"))
	case len(uri) > MaxURI:
		return invalid("", fmt.Errorf("the URI has %d bytes, the limit is %d", len(uri), MaxURI))
	case !utf8.ValidString(uri):
		return invalid(uri, errors.New("the URI is not UTF-8"))
	case strings.ContainsFunc(uri, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
		return invalid(uri, errors.New("the URI contains white space or a control character"))
	}
	if strings.HasPrefix(uri, ShapePrefix) {
		if _, ok := ParseShapeURI(uri); !ok {
			return invalid(uri, errors.New("a shape's URI ends in 64 hexadecimal digits in lower case"))
		}
	}
	return nil
}

// CheckPut is for engines: it checks [CheckURI], that the value is within [MaxValue], and that it
// is the shape that its URI names.
func CheckPut(uri string, value []byte, opt PutOptions) error {
	if err := CheckURI(uri); err != nil {
		return err
	}
	if len(value) > MaxValue {
		return invalid(uri, fmt.Errorf("the value has %d bytes, the limit is %d", len(value), MaxValue))
	}
	if opt.TTL < 0 {
		return invalid(uri, fmt.Errorf("the time to live is %v", opt.TTL))
	}
	fp, shape := ParseShapeURI(uri)
	if !shape {
		return nil
	}
	if opt.TTL != 0 {
		return invalid(uri, errors.New("a shape has no time to live"))
	}
	if sum := sha256.Sum256(value); sum != fp {
		return invalid(uri, fmt.Errorf("the value is another shape, %s", ShapeURI(sum)))
	}
	return nil
}

// CheckCommit is for engines: it checks [CheckPut], and that the URI is no shape's.
func CheckCommit(uri string, value []byte) error {
	if strings.HasPrefix(uri, ShapePrefix) {
		return invalid(uri, errors.New("a shape cannot be committed to"))
	}
	return CheckPut(uri, value, PutOptions{})
}

func invalid(uri string, err error) error { return &Error{Code: Invalid, URI: uri, Err: err} }
