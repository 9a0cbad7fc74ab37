package soap

import "bytes"

// maxCandidates bounds the tags named Envelope that are examined, so that hostile bytes do not make
// the search quadratic.
const maxCandidates = 16

// find scans the first envelope in a message.
func (s *envelopeScanner) find(prefix []byte) (none scannedEnvelope) {
	s.b = narrow(prefix[:min(len(prefix), MaxRecognize)])
	from := 0
	for range maxCandidates {
		at := findEnvelope(s.b, from)
		if at < 0 {
			break
		}
		s.at, s.scopes = at, 0
		if e := s.envelope(); e.version != None {
			return e
		}
		from = at + 1
	}
	return none
}

// narrow converts UTF-16 for the scanner: names and namespaces of SOAP are ASCII, other characters
// become '?'.
func narrow(b []byte) []byte {
	var hi int // offset of the high byte in each pair
	switch {
	case len(b) < 4:
		return b
	case b[0] == 0xFE && b[1] == 0xFF, b[0] == 0 && b[1] == '<':
		hi = 0
	case b[0] == 0xFF && b[1] == 0xFE, b[0] == '<' && b[1] == 0:
		hi = 1
	default:
		return b
	}
	out := make([]byte, 0, len(b)/2)
	for i := 0; i+1 < len(b); i += 2 {
		if c := b[i+1-hi]; b[i+hi] == 0 && c < 0x80 {
			out = append(out, c)
		} else {
			out = append(out, '?')
		}
	}
	return out
}

// findEnvelope returns the offset of the next '<' that begins a tag with the local name Envelope;
// -1 if there is none. Comments before it are skipped when the text is XML from its start.
func findEnvelope(b []byte, from int) int {
	comments := true
	for i := from; i < len(b); {
		n := bytes.IndexByte(b[i:], '<')
		if n < 0 {
			return -1
		}
		i += n
		if comments && bytes.HasPrefix(b[i:], []byte("<!--")) {
			if end := bytes.Index(b[i:], []byte("-->")); end > 0 {
				i += end + 3
				continue
			}
			comments = false
		}
		j := i + 1
		for j < len(b) && isNameByte(b[j]) {
			j++
		}
		if j < len(b) {
			if _, local := splitName(b[i+1 : j]); string(local) == "Envelope" {
				return i
			}
		}
		i++
	}
	return -1
}
