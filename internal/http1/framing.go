package http1

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Kind is how the end of a body is found.
type Kind uint8

const (
	// NoBody: the message ends with its head.
	NoBody Kind = iota
	// Length: Content-Length bytes follow.
	Length
	// Chunked: chunks and a trailer section follow.
	Chunked
	// UntilClose: the body ends with the connection; replies only.
	UntilClose
	// Tunnel: the rest is not HTTP: the bytes after a 101, or after a 2xx to CONNECT.
	Tunnel
)

var kindNames = map[Kind]string{NoBody: "none", Length: "length", Chunked: "chunked", UntilClose: "until close",
	Tunnel: "tunnel"}

func (k Kind) String() string { return kindNames[k] }

// Doubt is a point of a head on which two readers of HTTP could disagree (RFC 9112, section 11.2).
type Doubt uint8

const (
	// BothLengths: Transfer-Encoding and Content-Length; the former counts (section 6.3).
	BothLengths Doubt = iota + 1
	// RepeatedLength: Content-Length more than once, with one value.
	RepeatedLength
	// OldVersion: Transfer-Encoding in HTTP/1.0.
	OldVersion
	// UnknownCoding: a transfer coding other than chunked; the entity still has it.
	UnknownCoding
	// SpaceBeforeColon: white space between a field name and its colon.
	SpaceBeforeColon
	// OddName: a field name that is no token.
	OddName
	// Fold: a folded field (obs-fold).
	Fold
	// BareLF: a line that ends without CR.
	BareLF
	// ControlOctet: a CR or NUL inside a line.
	ControlOctet
)

var doubtNames = map[Doubt]string{
	BothLengths: "both Transfer-Encoding and Content-Length", RepeatedLength: "repeated Content-Length",
	OldVersion:    "Transfer-Encoding in HTTP/1.0",
	UnknownCoding: "unknown transfer coding", SpaceBeforeColon: "white space before a colon",
	OddName: "field name is no token",
	Fold:    "folded field", BareLF: "line end without CR", ControlOctet: "control byte",
}

func (d Doubt) String() string { return doubtNames[d] }

// Framing is where the body after a head ends. Length counts bytes, for Kind [Length] only. Doubts
// are in no particular order, each once; a front end that passes messages on to an unknown reader
// rejects those with doubts.
type Framing struct {
	Kind   Kind
	Length int64
	Doubts []Doubt
}

// RequestFraming returns the framing of a request's body (RFC 9112, section 6.3). Contradictions
// are [Conflict], values that are no length [Malformed].
func RequestFraming(h *Head) (Framing, error) { return framing(h, Framing{Kind: NoBody}) }

// ReplyFraming returns the framing of the body of the reply to a request of this method ("" if that
// is not known).
func ReplyFraming(h *Head, method string) (Framing, error) {
	status := h.Status()
	switch {
	case status == 101, method == "CONNECT" && status/100 == 2:
		return Framing{Kind: Tunnel, Doubts: lineDoubts(h)}, nil
	case method == "HEAD", status/100 == 1, status == 204, status == 304:
		return Framing{Kind: NoBody, Doubts: lineDoubts(h)}, nil
	}
	return framing(h, Framing{Kind: UntilClose})
}

func framing(h *Head, f Framing) (Framing, error) {
	f.Doubts = lineDoubts(h)
	length, times, err := contentLength(h)
	if err != nil {
		return f, err
	}
	if times > 1 {
		f.Doubts = append(f.Doubts, RepeatedLength)
	}
	if _, te := h.Get("Transfer-Encoding"); te {
		return f, f.transferCoding(h, times > 0)
	}
	if times > 0 {
		f.Kind, f.Length = Length, length
	}
	return f, nil
}

// transferCoding implements section 6.3, items 3 and 4.
func (f *Framing) transferCoding(h *Head, both bool) error {
	if both {
		f.Doubts = append(f.Doubts, BothLengths)
	}
	if string(h.Version()) == "HTTP/1.0" {
		f.Doubts = append(f.Doubts, OldVersion)
	}
	codings := h.Tokens("Transfer-Encoding")
	if len(codings) > maxTokens {
		return &Error{Code: TooLarge, What: "number of transfer codings"}
	}
	chunked := 0
	for _, c := range codings {
		switch c {
		case "chunked":
			chunked++
		case "identity": // RFC 2616; obsolete, still sent
		default:
			if !slices.Contains(f.Doubts, UnknownCoding) {
				f.Doubts = append(f.Doubts, UnknownCoding)
			}
		}
	}
	last := len(codings) > 0 && codings[len(codings)-1] == "chunked"
	switch {
	case chunked > 1, chunked == 1 && !last:
		return &Error{Code: Conflict, What: "Transfer-Encoding " + strconv.Quote(strings.Join(codings, ", "))}
	case last:
		f.Kind = Chunked
	case !h.IsReply():
		return &Error{Code: Conflict, What: "Transfer-Encoding of a request does not end with chunked"}
	default:
		f.Kind = UntilClose
	}
	return nil
}

// contentLength reads all Content-Length fields; times counts values.
func contentLength(h *Head) (length int64, times int, err error) {
	for _, f := range h.fields {
		if !f.Is("Content-Length") {
			continue
		}
		for s := range bytes.SplitSeq(f.Unfolded(), []byte{','}) {
			s = trim(s)
			n, perr := strconv.ParseInt(string(s), 10, 64)
			if !digits(s) || perr != nil {
				return 0, 0, &Error{Code: Malformed, What: fmt.Sprintf("Content-Length %.40q", s)}
			}
			if times > 0 && n != length {
				return 0, 0, &Error{Code: Conflict, What: fmt.Sprintf("Content-Length %d and %d", length, n)}
			}
			length = n
			times++
		}
	}
	return length, times, nil
}

// lineDoubts checks the head's lines.
func lineDoubts(h *Head) []Doubt {
	var seen [ControlOctet + 1]bool
	for _, f := range h.fields {
		seen[Fold] = seen[Fold] || f.Folded()
		colon := bytes.IndexByte(f.Raw, ':')
		seen[SpaceBeforeColon] = seen[SpaceBeforeColon] || len(f.Name) != colon
		seen[OddName] = seen[OddName] || !IsToken(f.Name)
	}
	for b := h.Octets; len(b) > 0; {
		line, n := cutLine(b)
		if n == 0 {
			break
		}
		seen[BareLF] = seen[BareLF] || n == len(line)+1
		seen[ControlOctet] = seen[ControlOctet] || bytes.IndexByte(line, '\r') >= 0 || bytes.IndexByte(line, 0) >= 0
		b = b[n:]
	}
	var ds []Doubt
	for d := BothLengths; d <= ControlOctet; d++ {
		if seen[d] {
			ds = append(ds, d)
		}
	}
	return ds
}
