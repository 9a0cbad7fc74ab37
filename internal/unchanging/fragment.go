package unchanging

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

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

// short returns what a message of plain SOAP has in the place of an entry's text: the handle of the
// scope, and the name and the proof of the reference, in 28 characters.
func (k *fragmentKeys) short(uri string) string {
	raw := make([]byte, 0, shortBytes)
	for _, digits := range []string{k.scope[:negotiate.HandleLen], uri[len(uri)-2*nameBytes:]} {
		raw, _ = hex.AppendDecode(raw, []byte(digits))
	}
	return shortForm.EncodeToString(append(raw, digest(k.proof, uri)[:proofBytes]...))
}

// Lengths in bytes: a short reference has 5 of handle, 8 of name, and 8 of proof.
const (
	nameBytes, proofBytes = 8, 8
	shortBytes            = negotiate.HandleLen/2 + nameBytes + proofBytes
)

var (
	shortForm = base64.RawURLEncoding.Strict()
	shortLen  = shortForm.EncodedLen(shortBytes)
)

// parseShort returns the bytes of a short reference; nil if it is none.
func parseShort(text string) []byte {
	if len(text) != shortLen {
		return nil
	}
	raw, err := shortForm.DecodeString(text)
	if err != nil || len(raw) != shortBytes {
		return nil
	}
	return raw
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
	if raw := parseShort(reference); raw != nil {
		name := raw[negotiate.HandleLen/2:][:nameBytes]
		uri = ctxstore.FragmentPrefix + k.scope + ":" + hex.EncodeToString(name)
		if !hmac.Equal([]byte(k.short(uri)), []byte(reference)) {
			return "", fmt.Errorf("reference %q was not made by the peers of its session", reference)
		}
		return uri, nil
	}
	uri, _, _ = strings.Cut(reference, "#")
	if !hmac.Equal([]byte(k.reference(uri)), []byte(reference)) {
		return "", fmt.Errorf("reference %.120q was not made by the peers of its session", reference)
	}
	return uri, nil
}

// ScopeURI returns the URI under which an end keeps, in its own store, which session has the key of
// a scope, or of the handle of one.
func ScopeURI(scope string) string { return ctxstore.ScopePrefix + scope }

// scopeOf returns the scope of a reference, of a short one the handle of that; empty if it is none.
func scopeOf(reference string) string {
	if raw := parseShort(reference); raw != nil {
		return hex.EncodeToString(raw[:negotiate.HandleLen/2])
	}
	const scope, name, proof = 32, 16, 16
	rest, ok := strings.CutPrefix(reference, ctxstore.FragmentPrefix)
	if !ok || len(rest) != scope+1+name+1+proof || rest[scope] != ':' || rest[scope+1+name] != '#' ||
		strings.Trim(rest[:scope], "0123456789abcdef") != "" {
		return ""
	}
	return rest[:scope]
}

// KeepScope has an end keep, in its own store, that a session has the key of its scope, for a time;
// 0: forever. A later session with the same key takes the place of an earlier one, but nobody's
// takes that of another key with the same handle.
func KeepScope(ctx context.Context, own ctxstore.Store, facts *negotiate.Facts, ttl time.Duration) error {
	if facts.Common == nil {
		return nil
	}
	o := ctxstore.PutOptions{TTL: ttl}
	if _, err := own.Put(ctx, ScopeURI(facts.Common.Scope()), []byte(facts.Session.URI()), o); err != nil {
		return err
	}
	other, err := CommonIn(own)(ctx, facts.Common.Handle())
	if err == nil && other.Key != facts.Common.Key {
		return nil // messages that refer travel whole
	}
	_, err = own.Put(ctx, ScopeURI(facts.Common.Handle()), []byte(facts.Session.URI()), o)
	return err
}

// DropScope is the reverse of KeepScope. What a later session has kept stays.
func DropScope(ctx context.Context, own ctxstore.Store, facts *negotiate.Facts) {
	for _, scope := range []string{facts.Common.Scope(), facts.Common.Handle()} {
		at, err := own.Get(ctx, ScopeURI(scope))
		if err == nil && string(at.Value) == facts.Session.URI() {
			_ = own.Delete(ctx, ScopeURI(scope), ctxstore.If(at.Revision)) // else it expires
		}
	}
}
