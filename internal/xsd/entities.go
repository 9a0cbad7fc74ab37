package xsd

import (
	"bytes"
	"fmt"
	"regexp"
	"sync"
)

// entity matches the declaration of an entity: whether it is one of the document type itself, its
// name, and its text in either kind of quotes; without text it is in another document.
var entity = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`<!ENTITY\s+(%\s+)?([^\s"'<>]+)\s+(?:"([^"]*)"|'([^']*)'|(?:SYSTEM|PUBLIC)\s)`)
})

// entities takes the entities of a document type, as schemas of W3C have them for their namespaces;
// otherwise it says what is wrong. They are plain text: none refers to another one, or to another
// document, and all places that may refer to them together become no longer than a tag may be. In
// messages there are none.
func (r *treeReader) entities(doctype []byte) (wrong string) {
	if !bytes.HasPrefix(doctype, []byte("DOCTYPE")) {
		return ""
	}
	list := entity().FindAllSubmatch(doctype, -1)
	const declares = "a document type that declares entities"
	switch n := bytes.Count(doctype, []byte("<!ENTITY")); {
	case n == 0:
		return ""
	case r.message || n != len(list):
		return declares
	}
	longest := 0
	r.dec.Entity = map[string]string{}
	for _, e := range list {
		name, text := string(e[2]), string(e[3])+string(e[4])
		switch _, again := r.dec.Entity[name]; {
		case len(e[1]) > 0: // for what follows in the document type, of which nothing is used
			continue
		case e[3] == nil && e[4] == nil:
			return fmt.Sprintf(declares+" of other documents: %.40s", name)
		case bytes.ContainsAny([]byte(text), "<&%"):
			return fmt.Sprintf(declares+" that are no plain text: %.40s", name)
		case !again: // the first declaration counts
			r.dec.Entity[name] = text
			longest = max(longest, len(text))
		}
	}
	if n := bytes.Count(r.text, []byte("&")); n*longest > maxTag {
		return fmt.Sprintf(declares+", of %d bytes for %d places", longest, n)
	}
	return ""
}
