package unchanging

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// A fragment is a part of messages in the common store of two peers (docs/context.md, section 7).
// Its entry is sealed, and its name depends on the key: who has the store alone learns nothing of
// it, and cannot confirm a guess either. A message refers to it by the URI of the entry, '#', and a
// proof, which only who has the key can make: nobody else has a receiver put a fragment into a
// message.

// fragmentKeys are the secrets that follow from the key of a common store.
type fragmentKeys struct {
	scope                string
	naming, proof, nonce []byte
	seal                 cipher.AEAD
}

func newFragmentKeys(c *negotiate.Common) *fragmentKeys {
	derived := func(what string) []byte { return digest(c.Key[:], what) }
	k := &fragmentKeys{scope: c.Scope(), naming: derived("name"), proof: derived("proof"), nonce: derived("nonce")}
	block, err := aes.NewCipher(derived("seal"))
	if err == nil {
		k.seal, err = cipher.NewGCM(block)
	}
	if err != nil {
		panic(err) // a key of 32 bytes is one of AES
	}
	return k
}

func digest(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// uri returns the URI of the entry of a text.
func (k *fragmentKeys) uri(text string) string { return k.uriOf(headerName(text)) }

// uriOf returns the URI of the entry of a text, by the name that it has in references on streams:
// who has the key finds the text of each of these.
func (k *fragmentKeys) uriOf(name string) string {
	return ctxstore.FragmentPrefix + k.scope + ":" + hex.EncodeToString(digest(k.naming, name)[:8])
}

// reference returns what a message has in the place of an entry's text.
func (k *fragmentKeys) reference(uri string) string {
	return uri + "#" + hex.EncodeToString(digest(k.proof, uri)[:8])
}

// entry returns the value of an entry. The nonce follows from the text, so that one text has one
// value, and no two texts have one nonce.
func (k *fragmentKeys) entry(uri, text string) []byte {
	nonce := digest(k.nonce, text)[:k.seal.NonceSize()]
	return k.seal.Seal(nonce, nonce, []byte(text), []byte(uri))
}

// open returns the text of an entry.
func (k *fragmentKeys) open(uri string, value []byte) (string, error) {
	n := k.seal.NonceSize()
	if len(value) < n {
		return "", errors.New("the fragment is cut")
	}
	text, err := k.seal.Open(nil, value[:n], value[n:], []byte(uri))
	if err != nil || k.uri(string(text)) != uri {
		return "", errors.New("the fragment is not what was put")
	}
	return string(text), nil
}

// check returns the URI of the entry that a reference names, if who made it had the key.
func (k *fragmentKeys) check(reference string) (uri string, err error) {
	uri, _, _ = strings.Cut(reference, "#")
	if !hmac.Equal([]byte(k.reference(uri)), []byte(reference)) {
		return "", fmt.Errorf("reference %.120q was not made by the peers of its session", reference)
	}
	return uri, nil
}

// ScopeURI returns the URI under which an end keeps, in its own store, which session has the key of
// a scope.
func ScopeURI(scope string) string { return ctxstore.ScopePrefix + scope }

// scopeOf returns the scope of a reference; empty if it is none.
func scopeOf(reference string) string {
	const scope, name, proof = 32, 16, 16
	rest, ok := strings.CutPrefix(reference, ctxstore.FragmentPrefix)
	if !ok || len(rest) != scope+1+name+1+proof || rest[scope] != ':' || rest[scope+1+name] != '#' ||
		strings.Trim(rest[:scope], "0123456789abcdef") != "" {
		return ""
	}
	return rest[:scope]
}
