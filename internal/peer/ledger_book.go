package peer

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/hhfr/hhfr/internal/bin"
	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// ledgerPrefix begins the URIs of a ledger: that of the book of no sequence, and those of pages.
const ledgerPrefix = "urn:hhfr:ledger:"

// perPage is how many entries a full page has. A commit writes the page that is not full, so it is
// short; a full one is written once, under a URI of its own, before the commit that names it.
const perPage = 128

// bookMark begins the value of a book.
const bookMark = "HHFR ledger 1\n"

type ledgerEntry struct {
	id     string
	amount int64
}

// book is the entries of one sequence: how many there are, a checksum that covers all of them in
// order, and the last page. The pages before lie in the store.
type book struct {
	name    string
	count   uint64
	sum     [32]byte
	page    []byte // entries behind the last full page
	changed bool

	read   []ledgerEntry // the page read last
	readAt uint64        // its number, from 1; 0: none
}

func isBook(value []byte) bool {
	return len(value) >= len(bookMark) && string(value[:len(bookMark)]) == bookMark
}

// parseBook reads a book's value; none is an empty book.
func parseBook(name string, value []byte) (*book, error) {
	b := &book{name: name}
	if len(value) == 0 {
		return b, nil
	}
	if !isBook(value) {
		return nil, errors.New("the effect in the store is not a ledger's")
	}
	r := bin.NewCursor(value[len(bookMark):], int64(len(bookMark)))
	b.count = r.Uvarint()
	copy(b.sum[:], r.Take(len(b.sum)))
	b.page = r.Rest()
	if err := r.Err(); err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	return b, nil
}

func (b *book) value() []byte {
	v := make([]byte, 0, len(bookMark)+binary.MaxVarintLen64+len(b.sum)+len(b.page))
	v = append(v, bookMark...)
	v = binary.AppendUvarint(v, b.count)
	v = append(v, b.sum[:]...)
	return append(v, b.page...)
}

func (b *book) pageURI(page uint64) string {
	return fmt.Sprintf("%s%s:%d", ledgerPrefix, b.name, page)
}

// append adds an entry. A full page goes to the store first: until the book is committed nothing
// names it, and after a crash it is written again.
func (b *book) append(ctx context.Context, store ctxstore.Store, e ledgerEntry) error {
	if b.count > 0 && b.count%perPage == 0 {
		if _, err := store.Put(ctx, b.pageURI(b.count/perPage), b.page, ctxstore.PutOptions{}); err != nil {
			return err
		}
		b.page = nil
	}
	b.page = appendEntry(b.page[:len(b.page):len(b.page)], e)
	b.count++
	b.sum = chain(b.sum, e)
	b.changed = true
	return nil
}

// chain is the checksum behind an entry.
func chain(before [32]byte, e ledgerEntry) [32]byte {
	h := append([]byte(nil), before[:]...)
	h = binary.BigEndian.AppendUint32(h, uint32(len(e.id)))
	h = append(h, e.id...)
	h = binary.BigEndian.AppendUint64(h, uint64(e.amount))
	return sha256.Sum256(h)
}

func appendEntry(page []byte, e ledgerEntry) []byte {
	page = bin.AppendBytes(page, []byte(e.id))
	return binary.AppendVarint(page, e.amount)
}

// entry gives that of a number, from 1.
func (b *book) entry(ctx context.Context, store ctxstore.Store, number uint64) (ledgerEntry, error) {
	page := (number-1)/perPage + 1
	if b.readAt != page {
		octets := b.page
		if page <= (b.count-1)/perPage {
			stored, err := store.Get(ctx, b.pageURI(page))
			if err != nil {
				return ledgerEntry{}, err
			}
			octets = stored.Value
		}
		b.read = b.read[:0]
		r := bin.NewCursor(octets, 0)
		for r.Len() > 0 && r.Err() == nil {
			id := string(r.Bytes(maxEntryID))
			amount := r.Uvarint()
			b.read = append(b.read, ledgerEntry{id, int64(amount>>1) ^ -int64(amount&1)})
		}
		if err := r.Err(); err != nil {
			return ledgerEntry{}, fmt.Errorf("page %d: %w", page, err)
		}
		b.readAt = page
	}
	i := (number - 1) % perPage
	if i >= uint64(len(b.read)) {
		return ledgerEntry{}, fmt.Errorf("page %d has %d entries only", page, len(b.read))
	}
	return b.read[i], nil
}
