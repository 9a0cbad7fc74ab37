package peer

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"strconv"
)

// BlobPath is where [Blob] stands.
const BlobPath = "/blob"

// maxBlob is the largest payload, in octets: what joined messages may have by default, after base64.
const maxBlob = 512 << 20

// Blob gives a payload of the size asked for, in octets, up to 512 MiB: random ones, the same for the same seed, as base64 without line ends. It is made while it is sent.
func Blob() Service {
	return &operation{
		name: "blob", documentation: "Gives random octets, as many as asked for, the same for the same seed.",
		request: `<xs:element name="size" type="xs:unsignedInt"/><xs:element name="seed" type="xs:unsignedLong" minOccurs="0"/>`,
		reply:   `<xs:element name="payload" type="xs:base64Binary"/>`,
		example: `<size>30</size>`,
		answer: func(_ context.Context, r *requestReader) (content, error) {
			v, err := r.values([]string{"size"}, "seed")
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
			return content{length: length, stream: io.MultiReader(bytes.NewReader([]byte(from)), newPayload(int(size), seed), bytes.NewReader([]byte(to)))}, nil
		},
	}
}

// randomText reads as random octets in base64.
type randomText struct {
	random *rand.ChaCha8
	left   int // octets
	text   []byte
	buffer [4 * blobGroups]byte
}

// blobGroups is how many groups of three octets are made at once.
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
		var octets [3 * blobGroups]byte
		some := octets[:min(p.left, len(octets))]
		_, _ = p.random.Read(some) // never fails
		p.left -= len(some)
		p.text = p.buffer[:base64.StdEncoding.EncodedLen(len(some))]
		base64.StdEncoding.Encode(p.text, some)
	}
	n := copy(to, p.text)
	p.text = p.text[n:]
	return n, nil
}
