package flow

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/hhfr/hhfr/internal/tlsrecord"
)

// Blocks of pcapng files (draft-ietf-opsawg-pcapng).
const (
	blockSection = 0x0A0D0D0A
	blockSecrets = 10
	// orderMagic is in the header of a section, in its byte order.
	orderMagic = 0x1A2B3C4D
	// secretsTLS is the type of secrets that are a key log.
	secretsTLS = 0x544C534B
)

// maxSecrets bounds the secrets of a file that nobody has taken yet, in bytes.
const maxSecrets = 32 << 20

// secretsReader finds the secrets in a pcapng file while others read that: gopacket passes over
// them.
type secretsReader struct {
	r     io.Reader
	order binary.ByteOrder // nil: no section has begun
	head  []byte           // of a block: its type and length, and 4 bytes after those, of secrets 8
	left  int64            // bytes of the block that follow
	block []byte           // what is collected of secrets
	want  int              // the length of the secrets that are being collected
	ended bool             // what follows is not understood
	size  int
	found [][]byte // key logs
}

func (s *secretsReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.scan(p[:n])
	return n, err
}

// take returns the key logs that were found, and forgets them.
func (s *secretsReader) take() (logs [][]byte) {
	if s == nil || len(s.found) == 0 {
		return nil
	}
	logs, s.found, s.size = s.found, nil, 0
	return logs
}

func (s *secretsReader) scan(b []byte) {
	for len(b) > 0 && !s.ended {
		if s.left > 0 {
			n := int(min(s.left, int64(len(b))))
			s.collect(b[:n])
			b, s.left = b[n:], s.left-int64(n)
			continue
		}
		need := 12
		if len(s.head) >= need {
			need = 16
		}
		n := min(need-len(s.head), len(b))
		s.head, b = append(s.head, b[:n]...), b[n:]
		if len(s.head) == need && s.begin() {
			s.head = s.head[:0]
		}
	}
}

// begin begins a block, as soon as its head is there.
func (s *secretsReader) begin() bool {
	h := s.head
	if binary.LittleEndian.Uint32(h) == blockSection {
		s.order = binary.ByteOrder(binary.LittleEndian)
		if s.order.Uint32(h[8:]) != orderMagic {
			s.order = binary.BigEndian
		}
	}
	if s.order == nil {
		s.ended = true
		return true
	}
	kind, length := s.order.Uint32(h), int64(s.order.Uint32(h[4:]))
	if kind == blockSecrets && length > 20 && len(h) < 16 {
		return false
	}
	if s.left = length - int64(len(h)); s.left < 0 {
		s.ended = true
		return true
	}
	s.want = 0
	if kind == blockSecrets && len(h) == 16 && s.order.Uint32(h[8:]) == secretsTLS {
		if n := int64(s.order.Uint32(h[12:])); n <= s.left && int64(s.size)+n <= maxSecrets {
			s.want, s.block = int(n), nil
		}
	}
	return true
}

// collect takes bytes of a block.
func (s *secretsReader) collect(b []byte) {
	if s.want == 0 {
		return
	}
	s.block = append(s.block, b[:min(len(b), s.want-len(s.block))]...)
	if len(s.block) == s.want {
		s.found, s.size = append(s.found, s.block), s.size+s.want
		s.want, s.block = 0, nil
	}
}

// AddSecrets reads a pcapng file to its end, and adds the secrets in it to keys.
func AddSecrets(keys *tlsrecord.KeyLog, r io.Reader) error {
	s := &secretsReader{r: r}
	buf := make([]byte, 64<<10)
	for {
		_, err := s.Read(buf)
		for _, log := range s.take() {
			keys.Add(log)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return &Error{Code: ReadFailed, Err: err}
		}
	}
}
