package negotiate

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/soap"
)

// commonName is the element that names the common store.
const commonName = "ContextStore"

// NewCommon returns a common store with a key from a strong random source.
func NewCommon(url string) *Common {
	c := &Common{URL: url}
	rand.Read(c.Key[:])
	return c
}

// Scope names the fragments of a key, and says nothing of it.
func (c *Common) Scope() string {
	sum := sha256.Sum256(append([]byte("scope"), c.Key[:]...))
	return hex.EncodeToString(sum[:16])
}

// Handle is the beginning of Scope by which short references find the key.
func (c *Common) Handle() string { return c.Scope()[:HandleLen] }

// HandleLen is the length of a handle, in hexadecimal digits.
const HandleLen = 10

func (w *documentWriter) common(c *Common) {
	if c == nil {
		return
	}
	w.texts(commonName, c.URL)
	w.children[len(w.children)-1].Attrs = []soap.Attr{{Name: "key", Value: hex.EncodeToString(c.Key[:])}}
}

func (r *documentReader) common() *Common {
	found := r.all(commonName, 1)
	if len(found) == 0 {
		return nil
	}
	c := &Common{URL: strings.TrimSpace(found[0].Text)}
	key, err := hex.DecodeString(found[0].Attr("key"))
	if bad := CheckText(c.URL); bad != nil || c.URL == "" || err != nil || len(key) != len(c.Key) {
		r.fail("%s has a bad URL or key", commonName)
	}
	copy(c.Key[:], key)
	return c
}

func (w *documentWriter) references(list []string) {
	if len(list) > maxChoices && w.err == nil {
		w.err = fmt.Errorf("%d header references, at most %d are allowed", len(list), maxChoices)
	}
	w.texts("HeaderReference", list...)
}

// PublicEntry is an entry of the common store that says what was agreed on.
type PublicEntry struct {
	URI   string
	Value []byte
}

// PublicEntries are the entries under URI-S, URI-R and URI-T of a session, by which third parties
// learn what was agreed on. They contain no secret. Errors: Malformed.
func (f *Facts) PublicEntries() ([]PublicEntry, error) {
	uri := func(what string) string {
		return ctxstore.AgreedPrefix + hex.EncodeToString(f.Session[:]) + ":" + what
	}
	type field struct{ local, value string }
	var entries []PublicEntry
	for _, e := range []struct {
		what, root string
		fields     []field
	}{
		{"scheme", "Scheme", []field{
			{"Session", f.Session.String()}, {"URI", f.Scheme}, {"Representation", uri("representation")},
			{"Transport", uri("transport")}, {"Origin", f.Origin}, {"Path", f.Path},
		}},
		{"representation", "Representation", []field{
			{"Session", f.Session.String()}, {"URI", f.Representation},
			{"RequestDescription", f.RequestDescription}, {"ReplyDescription", f.ReplyDescription},
		}},
		{"transport", "Transport", []field{
			{"Session", f.Session.String()}, {"URI", f.Transport}, {"Address", f.Address}, {"Assurance", f.Assurance},
			{"Security", f.Security},
		}},
	} {
		w := documentWriter{ns: xmlns.HHFRContext}
		for _, v := range e.fields {
			if v.value != "" {
				w.texts(v.local, v.value)
			}
		}
		if e.what == "scheme" && f.Common != nil {
			w.texts("Fragments", ctxstore.FragmentPrefix+f.Common.Scope()+":")
		}
		if w.err != nil {
			return nil, AsMalformed(w.err)
		}
		el := w.element(e.root)
		document, err := soap.BuildElement(&el)
		if err != nil {
			return nil, AsMalformed(err)
		}
		entries = append(entries, PublicEntry{uri(e.what), document})
	}
	return entries, nil
}
