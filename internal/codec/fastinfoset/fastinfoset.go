// Package fastinfoset reads and writes Fast Infoset documents (ITU-T X.891, ISO/IEC 24824-1): XML
// infosets in binary, in which a name or short text that came before is an index. [Reader] and
// [InfosetWriter] know events; their ToXML and FromXML convert from and to XML text, which keeps
// the infoset and not the bytes. Nothing here is safe for concurrent use.
package fastinfoset

import (
	"bytes"
	"fmt"

	"github.com/hhfr/hhfr/internal/fault"
)

// Kind is the kind of an [Event].
type Kind uint8

const (
	StartDocument   Kind = iota + 1 // X.891 7.2; Properties
	StartElement                    // 7.3; Name, Declared, Attrs
	EndElement                      // Name, which an InfosetWriter does not need
	Characters                      // 7.7; Value
	Comment                         // 7.8; Value
	Instruction                     // 7.5; Name.Local is the target, Value the data
	StartDoctype                    // 7.9; System, Public
	EndDoctype                      //
	EntityReference                 // 7.6, one that was not expanded; Name.Local, System, Public
	EndDocument                     //
)

// Event is one step of a document. What a [Reader] returns is valid until its next call of Next,
// but for bytes of the document, and is not to be changed.
type Event struct {
	Kind           Kind
	Name           Name
	Declared       []Prefixed
	Attrs          []Attr
	Value          Value
	System, Public []byte // empty: absent
	Properties     *DocumentProperties
}

// Name is the name of an element or attribute. Without a namespace it has no prefix.
type Name struct{ Prefix, Space, Local []byte }

// Prefixed is a namespace attribute (X.891 7.12): an empty prefix is the default namespace, an
// empty Space ends what was declared before.
type Prefixed struct{ Prefix, Space []byte }

// Attr is an attribute (X.891 7.4).
type Attr struct {
	Name  Name
	Value Value
}

// TextForm is how a text is encoded (X.891 7.17).
type TextForm uint8

const (
	UTF8       TextForm = iota
	UTF16               // big endian
	Restricted          // characters of the alphabet Index
	Encoded             // by the algorithm Index
)

// Value is a text: in UTF-8, whatever its form on the wire, but for Encoded, where it is what the
// algorithm made of it ([Value.AppendText]).
type Value struct {
	Bytes []byte
	Form  TextForm
	Index uint16 // in the table of alphabets or algorithms, from 1
}

// DocumentProperties are those of a document (X.891 7.2).
type DocumentProperties struct {
	XMLDeclaration bool // <?xml encoding='finf'?> stands first
	Additional     []Additional
	Notations      []NotationOrEntity
	Unparsed       []NotationOrEntity
	Encoding       []byte // the character encoding scheme of the XML; empty: absent
	Standalone     string // yes, no; empty: absent
	Version        []byte // of XML; empty: absent
}

// Additional is data about a document, of a kind that a URI names.
type Additional struct{ URI, Data []byte }

// NotationOrEntity is a notation (X.891 7.11) or an unparsed entity (7.10), which has a Notation.
type NotationOrEntity struct{ Name, System, Public, Notation []byte }

// Vocabulary has entries of the tables (X.891 8) behind those of all documents. The parts of
// Elements and Attributes stand in their own tables, too.
type Vocabulary struct {
	Alphabets            []string // restricted alphabets, from index 16
	Algorithms           [][]byte // URIs, from index 32
	Prefixes, Namespaces [][]byte
	Locals               [][]byte
	NCNames, URIs        [][]byte // other names; other URIs
	Values, Chunks       []Value  // of attributes; of content
	Others               []Value  // of comments, and data of instructions
	Elements, Attributes []Name
}

// Limits bound what a document may make of memory and time. Where one is 0, the default holds.
type Limits struct {
	Depth      int   // elements in each other; 1000
	Entries    int   // of one table; 1,048,576, as many as it can have
	TableBytes int64 // in all tables; 64 MiB
	// TextBytes is the length of all names and texts, each counted as often as it stands in XML,
	// and of the namespace of each name; 256 MiB. A small index can stand for a long text.
	TextBytes int64
}

func (l *Limits) fill() {
	if l.Depth == 0 {
		l.Depth = 1000
	}
	if l.Entries == 0 {
		l.Entries = maxIndex
	}
	if l.TableBytes == 0 {
		l.TableBytes = 64 << 20
	}
	if l.TextBytes == 0 {
		l.TextBytes = 256 << 20
	}
}

const (
	// maxIndex is the largest number of entries of a table (X.891 7.13.7).
	maxIndex = 1 << 20
	// maxAttrs is the largest number of attributes of one element: their names are compared.
	maxAttrs = 128
	// maxScopes is how many prefixes may be declared at one place: they are searched one by one.
	maxScopes = 128
	// firstAlphabet and firstAlgorithm are the indexes of the first that is not built in; those
	// between are reserved (X.891 8.2.2, 8.3.2).
	firstAlphabet, firstAlgorithm = 16, 32
)

// magic is the identification and the version (X.891 12.6, 12.7).
const magic = "\xE0\x00\x00\x01"

// Code is the kind of an [Error].
type Code uint8

const (
	// Truncated: the document ends too early.
	Truncated Code = iota + 1
	// Malformed: it is no Fast Infoset, or no infoset that XML can have.
	Malformed
	// Excessive: a limit was exceeded.
	Excessive
	// Unknown: it needs a vocabulary, alphabet or algorithm that nobody here knows.
	Unknown
	// Refused: it has what the reader or writer was told to refuse, or XML text cannot say.
	Refused
)

func (c Code) String() string {
	return [...]string{
		"no error", "the Fast Infoset document ends too early", "no Fast Infoset", "Fast Infoset beyond a limit",
		"Fast Infoset with something unknown", "Fast Infoset that is not allowed",
	}[c]
}

// Error is what is wrong, with the offset in the document that is read or written.
type Error = fault.At[Code]

func problem(code Code, at int, format string, args ...any) *Error {
	e := &Error{Code: code, At: int64(at)}
	if format != "" {
		e.Err = fmt.Errorf(format, args...)
	}
	return e
}

// Begins reports whether a document begins so.
func Begins(b []byte) bool {
	n, _ := xmlDeclaration(b)
	return bytes.HasPrefix(b[n:], []byte(magic))
}

// xmlDeclaration is the length of the XML declaration at the beginning, one of nine (X.891 12.3).
// It is 0 where there is none, and unless ok, what begins like one is no such.
func xmlDeclaration(b []byte) (n int, ok bool) {
	const begin = "<?xml "
	if len(b) < len(begin) || string(b[:len(begin)]) != begin {
		return 0, true
	}
	for _, version := range [...]string{"", "version='1.0' ", "version='1.1' "} {
		for _, standalone := range [...]string{"", " standalone='yes'", " standalone='no'"} {
			rest := b[len(begin):]
			for _, part := range [...]string{version, "encoding='finf'", standalone, "?>"} {
				if len(rest) < len(part) || string(rest[:len(part)]) != part {
					rest = nil
					break
				}
				rest = rest[len(part):]
			}
			if rest != nil {
				return len(b) - len(rest), true
			}
		}
	}
	return 0, false
}
