package tlsrecord

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // of suites that are still in use
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"hash"

	"golang.org/x/crypto/chacha20poly1305"
)

// Versions of TLS that are decrypted.
const (
	version12 = 0x0303
	version13 = 0x0304
)

// suite is what has to be known of a cipher suite.
type suite struct {
	key  int              // length of the key in bytes
	iv   int              // in TLS 1.2, of what of the nonce comes from the secret
	hash func() hash.Hash // of key derivation
	aead func(key []byte) (cipher.AEAD, error)
	// mac and macLen are those of a CBC suite; nil: it is none.
	mac    func() hash.Hash
	macLen int
}

func gcm(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

var (
	aes128  = suite{key: 16, iv: 4, hash: sha256.New, aead: gcm}
	aes256  = suite{key: 32, iv: 4, hash: sha512.New384, aead: gcm}
	chacha  = suite{key: 32, iv: 12, hash: sha256.New, aead: chacha20poly1305.New}
	cbc128  = suite{key: 16, hash: sha256.New, mac: sha1.New, macLen: 20}
	cbc256  = suite{key: 32, hash: sha256.New, mac: sha1.New, macLen: 20}
	cbc1282 = suite{key: 16, hash: sha256.New, mac: sha256.New, macLen: 32}
	cbc2562 = suite{key: 32, hash: sha256.New, mac: sha256.New, macLen: 32}
	cbc2563 = suite{key: 32, hash: sha512.New384, mac: sha512.New384, macLen: 48}
)

// suites13 and suites12 are the cipher suites of the versions, by their numbers.
var (
	suites13 = map[uint16]suite{0x1301: aes128, 0x1302: aes256, 0x1303: chacha}
	suites12 = map[uint16]suite{
		// RSA, DHE_RSA, ECDHE_ECDSA, ECDHE_RSA, and PSK, DHE_PSK, ECDHE_PSK
		0x009C: aes128, 0x009E: aes128, 0xC02B: aes128, 0xC02F: aes128, 0x00A8: aes128, 0x00AA: aes128, 0xD001: aes128,
		0x009D: aes256, 0x009F: aes256, 0xC02C: aes256, 0xC030: aes256, 0x00A9: aes256, 0x00AB: aes256, 0xD002: aes256,
		0xCCA8: chacha, 0xCCA9: chacha, 0xCCAA: chacha, 0xCCAB: chacha, 0xCCAC: chacha, 0xCCAD: chacha,
		0x002F: cbc128, 0x0033: cbc128, 0xC009: cbc128, 0xC013: cbc128,
		0x0035: cbc256, 0x0039: cbc256, 0xC00A: cbc256, 0xC014: cbc256,
		0x003C: cbc1282, 0x0067: cbc1282, 0xC023: cbc1282, 0xC027: cbc1282,
		0x003D: cbc2562, 0x006B: cbc2562, 0xC024: cbc2563, 0xC028: cbc2563,
	}
)

// protection opens the records of one direction under one key.
type protection interface {
	// open returns the content of a record, of which there were seq before, and its content type;
	// false: that is not its number, or not its key.
	open(seq uint64, record []byte) (content []byte, kind byte, ok bool)
	// overhead is by how many bytes a record is longer than its content, as a rule; 0: that is not
	// known.
	overhead() int
}

// expandLabel is HKDF-Expand-Label without a context (RFC 8446, section 7.1).
func (s *suite) expandLabel(secret []byte, name string, length int) []byte {
	name = "tls13 " + name
	info := append([]byte{byte(length >> 8), byte(length), byte(len(name))}, name...)
	out, _ := hkdf.Expand(s.hash, secret, string(append(info, 0)), length) // of short lengths it does not fail
	return out
}

// sealed13 is the protection of TLS 1.3 (RFC 8446, section 5.2).
type sealed13 struct {
	aead cipher.AEAD
	iv   []byte
}

// protect13 is the protection by a traffic secret; nil: there is none.
func (s *suite) protect13(secret []byte) protection {
	if secret == nil {
		return nil
	}
	aead, err := s.aead(s.expandLabel(secret, "key", s.key))
	if err != nil {
		return nil
	}
	return &sealed13{aead, s.expandLabel(secret, "iv", aead.NonceSize())}
}

// numbered is a nonce: the vector combined with a record's number.
func numbered(iv []byte, seq uint64) []byte {
	nonce := append([]byte(nil), iv...)
	at := len(nonce) - 8
	binary.BigEndian.PutUint64(nonce[at:], binary.BigEndian.Uint64(nonce[at:])^seq)
	return nonce
}

func (p *sealed13) open(seq uint64, record []byte) (content []byte, kind byte, ok bool) {
	content, err := p.aead.Open(nil, numbered(p.iv, seq), record[headerLen:], record[:headerLen])
	if err != nil {
		return nil, 0, false
	}
	n := len(content)
	for n > 0 && content[n-1] == 0 { // padding
		n--
	}
	if n == 0 {
		return nil, 0, true
	}
	return content[:n-1], content[n-1], true
}

func (p *sealed13) overhead() int { return p.aead.Overhead() + 1 }

// prf is the pseudorandom function of TLS 1.2 (RFC 5246, section 5).
func (s *suite) prf(secret []byte, name string, seed []byte, length int) (out []byte) {
	mac := hmac.New(s.hash, secret)
	sum := func(parts ...[]byte) []byte {
		mac.Reset()
		for _, p := range parts {
			mac.Write(p)
		}
		return mac.Sum(nil)
	}
	seed = append([]byte(name), seed...)
	for a := sum(seed); len(out) < length; a = sum(a) {
		out = append(out, sum(a, seed)...)
	}
	return out[:length]
}

// protect12 are the protections of both directions by a master secret, that of the client first.
func (s *suite) protect12(master []byte, client, server [32]byte, encryptThenMAC bool) (both [2]protection) {
	length := 2 * (s.macLen + s.key + s.iv)
	keys := helloFields(s.prf(master, "key expansion", append(server[:], client[:]...), length))
	macs := [2][]byte{keys.take(s.macLen), keys.take(s.macLen)}
	secrets := [2][]byte{keys.take(s.key), keys.take(s.key)}
	ivs := [2][]byte{keys.take(s.iv), keys.take(s.iv)}
	for i, key := range secrets {
		if s.mac != nil {
			block, err := aes.NewCipher(key)
			if err == nil {
				both[i] = &chained12{block, hmac.New(s.mac, macs[i]), encryptThenMAC}
			}
			continue
		}
		if aead, err := s.aead(key); err == nil {
			both[i] = &sealed12{aead, ivs[i]}
		}
	}
	return both
}

// sealed12 is the protection of AEAD suites in TLS 1.2 (RFC 5288, 7905).
type sealed12 struct {
	aead cipher.AEAD
	iv   []byte // the rest of the nonce is in the record
}

func (p *sealed12) open(seq uint64, record []byte) (content []byte, kind byte, ok bool) {
	body := record[headerLen:]
	var nonce []byte
	if explicit := p.aead.NonceSize() - len(p.iv); explicit > 0 {
		if len(body) < explicit {
			return nil, 0, false
		}
		nonce = append(append(nonce, p.iv...), body[:explicit]...)
		body = body[explicit:]
	} else {
		nonce = numbered(p.iv, seq)
	}
	if len(body) < p.aead.Overhead() {
		return nil, 0, false
	}
	content, err := p.aead.Open(nil, nonce, body, authenticated(seq, record, len(body)-p.aead.Overhead()))
	return content, record[0], err == nil
}

func (p *sealed12) overhead() int { return p.aead.Overhead() + p.aead.NonceSize() - len(p.iv) }

// authenticated is what is authenticated of a record besides its content.
func authenticated(seq uint64, record []byte, length int) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 13), seq)
	b = append(b, record[:3]...)
	return binary.BigEndian.AppendUint16(b, uint16(length))
}

// chained12 is the protection of CBC suites in TLS 1.2 (RFC 5246, section 6.2.3.2; RFC 7366).
type chained12 struct {
	block          cipher.Block
	mac            hash.Hash
	encryptThenMAC bool
}

func (p *chained12) open(seq uint64, record []byte) (content []byte, kind byte, ok bool) {
	body, size := record[headerLen:], p.mac.Size()
	var sum []byte
	if p.encryptThenMAC {
		if len(body) < size {
			return nil, 0, false
		}
		body, sum = body[:len(body)-size], body[len(body)-size:]
		if !p.is(sum, seq, record, body) {
			return nil, 0, false
		}
	}
	if len(body) < 2*aes.BlockSize || len(body)%aes.BlockSize != 0 {
		return nil, 0, false
	}
	content = make([]byte, len(body)-aes.BlockSize)
	cipher.NewCBCDecrypter(p.block, body[:aes.BlockSize]).CryptBlocks(content, body[aes.BlockSize:])
	n := len(content) - 1 - int(content[len(content)-1])
	if p.encryptThenMAC {
		if n < 0 {
			return nil, 0, false
		}
		return content[:n], record[0], true
	}
	if n -= size; n < 0 {
		return nil, 0, false
	}
	content, sum = content[:n], content[n:n+size]
	return content, record[0], p.is(sum, seq, record, content)
}

// is reports whether a sum is that of a record.
func (p *chained12) is(sum []byte, seq uint64, record, of []byte) bool {
	p.mac.Reset()
	p.mac.Write(authenticated(seq, record, len(of)))
	p.mac.Write(of)
	return hmac.Equal(sum, p.mac.Sum(nil))
}

func (p *chained12) overhead() int { return 0 }
