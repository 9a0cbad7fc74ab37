package peer

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
)

// BlobPath is where [Blob] stands.
const BlobPath = "/blob"

// maxBlob is the largest payload, in bytes: what joined messages may have by default, after
// base64.
const maxBlob = 512 << 20

// Blob gives a payload of the size asked for, in bytes, up to 512 MiB: random ones, the same for
// the same seed, as base64 without line ends. It is made while it is sent.
func Blob() Service {
	return (&wrappedOperation{
		name: "blob", documentation: "Gives random octets, as many as asked for, the same for the same seed.",
		request: `<xs:element name="size" type="xs:unsignedInt"/><xs:element name="seed" type="xs:unsignedLong" ` +
			`minOccurs="0"/>`,
		reply:   `<xs:element name="payload" type="xs:base64Binary"/>`,
		example: `<size>30</size>`,
		answer: func(_ context.Context, e *envelope) (content, error) {
			v, err := e.values([]string{"size"}, "seed")
			if err != nil {
				return content{}, err
			}
			size, err := strconv.ParseUint(collapse(v["size"]), 10, 32)
			if err != nil || size > maxBlob {
				return content{}, refuse("size %.40q is not from 0 to %d", v["size"], maxBlob)
			}
			var seed uint64
			if text, ok := v["seed"]; ok {
				if seed, err = strconv.ParseUint(collapse(text), 10, 64); err != nil {
					return content{}, refuse("seed %.40q is not from 0 to 2^64-1", text)
				}
			}
			const from, to = "<payload>", "</payload>"
			length := len(from) + base64.StdEncoding.EncodedLen(int(size)) + len(to)
			whole := io.MultiReader(strings.NewReader(from), newPayload(int(size), seed), strings.NewReader(to))
			return content{length: length, stream: whole}, nil
		},
	}).service()
}

// randomText reads as random bytes in base64.
type randomText struct {
	random *rand.ChaCha8
	left   int // bytes
	text   []byte
	buffer [4 * blobGroups]byte
}

// blobGroups is how many groups of three bytes are made at once.
const blobGroups = 4096

func newPayload(size int, seed uint64) *randomText {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	return &randomText{random: rand.NewChaCha8(key), left: size}
}

// Read implements [io.Reader].
func (p *randomText) Read(to []byte) (int, error) {
	if len(p.text) == 0 {
		if p.left == 0 {
			return 0, io.EOF
		}
		var random [3 * blobGroups]byte
		some := random[:min(p.left, len(random))]
		_, _ = p.random.Read(some) // never fails
		p.left -= len(some)
		p.text = p.buffer[:base64.StdEncoding.EncodedLen(len(some))]
		base64.StdEncoding.Encode(p.text, some)
	}
	n := copy(to, p.text)
	p.text = p.text[n:]
	return n, nil
}
