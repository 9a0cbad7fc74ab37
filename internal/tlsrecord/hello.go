package tlsrecord

import (
	"encoding/binary"
)

// Handshake messages that are read (RFC 8446, section 4).
const (
	msgClientHello         = 1
	msgServerHello         = 2
	msgNewSessionTicket    = 4
	msgEncryptedExtensions = 8
	msgKeyUpdate           = 24
)

// Extensions of hellos that are read.
const (
	extALPN              = 16
	extEncryptThenMAC    = 22
	extSessionTicket     = 35
	extSupportedVersions = 43
)

// maxMessage bounds the handshake messages that are read, in bytes; NewSessionTicket has at most 64
// KiB.
const maxMessage = 1<<16 + 64

// messages cuts the handshake messages out of records.
type messages struct {
	buf  []byte
	skip int // bytes of a message that is not read
}

// write takes the content of a record.
func (h *messages) write(b []byte, take func(kind byte, body []byte)) {
	h.buf = append(h.buf, b...)
	for {
		n := min(h.skip, len(h.buf))
		h.skip -= n
		h.buf = h.buf[n:]
		if len(h.buf) < 4 {
			break
		}
		kind, length := h.buf[0], int(binary.BigEndian.Uint32(h.buf)&0xFFFFFF)
		if length > maxMessage {
			h.skip = 4 + length
			continue
		}
		if len(h.buf) < 4+length {
			break
		}
		take(kind, h.buf[4:4+length])
		h.buf = h.buf[4+length:]
	}
	h.buf = append([]byte(nil), h.buf...)
}

// helloFields reads the fields of a handshake message; after the first one that is not whole all
// are empty.
type helloFields []byte

func (f *helloFields) take(n int) (b []byte) {
	if n > len(*f) {
		*f = nil
		return nil
	}
	b, *f = (*f)[:n], (*f)[n:]
	return b
}

func (f *helloFields) uint16() int {
	if b := f.take(2); b != nil {
		return int(binary.BigEndian.Uint16(b))
	}
	return 0
}

// short and long take a field after its length, in one byte or two.
func (f *helloFields) short() helloFields {
	if b := f.take(1); b != nil {
		return f.take(int(b[0]))
	}
	return nil
}

func (f *helloFields) long() helloFields { return f.take(f.uint16()) }

// extensions passes on the extensions of a hello.
func (f *helloFields) extensions(take func(kind int, body helloFields)) {
	for all := f.long(); len(all) > 0; {
		kind := all.uint16()
		take(kind, all.long())
	}
}

// protocols are the names in an ALPN extension.
func protocols(body helloFields) (names []string) {
	for list := body.long(); len(list) > 0; {
		names = append(names, string(list.short()))
	}
	return names
}

// clientHello is what matters of one.
type clientHello struct {
	random    [32]byte
	session   []byte
	ticket    []byte
	protocols []string
}

func parseClientHello(body helloFields) (h clientHello) {
	body.take(2)
	copy(h.random[:], body.take(32))
	h.session = body.short()
	body.long()  // cipher suites
	body.short() // compression methods
	body.extensions(func(kind int, ext helloFields) {
		switch kind {
		case extSessionTicket:
			h.ticket = ext
		case extALPN:
			h.protocols = protocols(ext)
		}
	})
	return h
}

// serverHello is what matters of one.
type serverHello struct {
	version        uint16
	random         [32]byte
	session        []byte
	suite          uint16
	encryptThenMAC bool
	protocols      []string
}

// retryRandom is the random of a hello that asks for another client hello (RFC 8446, section
// 4.1.3).
var retryRandom = [32]byte{
	0xCF, 0x21, 0xAD, 0x74, 0xE5, 0x9A, 0x61, 0x11, 0xBE, 0x1D, 0x8C, 0x02, 0x1E, 0x65, 0xB8, 0x91,
	0xC2, 0xA2, 0x11, 0x16, 0x7A, 0xBB, 0x8C, 0x5E, 0x07, 0x9E, 0x09, 0xE2, 0xC8, 0xA8, 0x33, 0x9C,
}

func parseServerHello(body helloFields) (h serverHello) {
	h.version = uint16(body.uint16())
	copy(h.random[:], body.take(32))
	h.session = body.short()
	h.suite = uint16(body.uint16())
	body.take(1) // compression method
	body.extensions(func(kind int, ext helloFields) {
		switch kind {
		case extSupportedVersions:
			h.version = uint16(ext.uint16())
		case extEncryptThenMAC:
			h.encryptThenMAC = true
		case extALPN:
			h.protocols = protocols(ext)
		}
	})
	return h
}
