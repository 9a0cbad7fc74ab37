package principal

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
)

// digest stands for a secret, or for some: nobody without the key of the registry can find out
// which. Zero: there is none.
type digest [16]byte

// digest is that of values in this order. None of it leaves the process, so that a hash that begins
// with the key is as good as an HMAC.
func (r *Registry) digest(values ...[]byte) (d digest) {
	if len(values) == 0 {
		return d
	}
	text := append(make([]byte, 0, 512), r.key[:]...)
	for _, v := range values {
		text = append(binary.AppendUvarint(text, uint64(len(v))), v...)
	}
	sum := sha256.Sum256(text)
	copy(d[:], sum[:])
	return d
}

// proof is what a client has shown: its certificate, its credentials, its cookies.
type proof [3]digest

func (r *Registry) proofOf(from Peer, s *said) (p proof) {
	if from.Certificate != nil {
		p[0] = r.digest(from.Certificate)
	}
	if !s.isChanging {
		p[1] = r.digest(s.authorization...)
	}
	for _, one := range s.cookies {
		if isSecret(one) {
			p[2] = r.digest(s.cookies...)
		}
	}
	return p
}

// isOf reports whether two proofs can be those of one client: something is the same in both, and
// what both have does not differ. A session begins to have a cookie, for example.
func (p proof) isOf(other proof) bool {
	same := false
	for i, one := range p {
		if one == (digest{}) || other[i] == (digest{}) {
			continue
		}
		if one != other[i] {
			return false
		}
		same = true
	}
	return same
}

// isConstant reports whether the value of Authorization is a secret that a client shows with each
// request: the others are made anew for each.
func isConstant(value []byte) bool {
	scheme, credentials, _ := bytes.Cut(value, []byte{' '})
	credentials = bytes.TrimSpace(credentials)
	switch string(bytes.ToLower(scheme)) {
	case "bearer":
		return len(credentials) > 0
	case "basic":
		pair, err := base64.StdEncoding.AppendDecode(nil, credentials)
		_, password, _ := bytes.Cut(pair, []byte{':'})
		return err == nil && len(password) > 0
	}
	return false
}

// minSecret is how long the value of a cookie is at least that says who somebody is, in bytes: what
// is shorter can be guessed, or says which language they read.
const minSecret = 16

// isSecret reports whether one of the values of cookies may be a secret.
func isSecret(cookies []byte) bool {
	for one := range bytes.SplitSeq(cookies, []byte{';'}) {
		if _, value, _ := bytes.Cut(one, []byte{'='}); len(bytes.TrimSpace(value)) >= minSecret {
			return true
		}
	}
	return false
}
