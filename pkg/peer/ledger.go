package peer

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// LedgerPath is where a [Ledger] stands.
const LedgerPath = "/ledger"

// Ledger keeps entries, to see what became of messages: each add is an effect, and read tells all of them. What comes in a sequence is appended in the transaction of its message, to a book of that sequence; all
// else goes to one further book. Entries are as durable as the store.
type Ledger struct {
	store ctxstore.Store
	plain sync.Mutex // held while the further book is changed
}

// NewLedger makes a ledger over a store, that of the server's sequences.
func NewLedger(store ctxstore.Store) *Ledger { return &Ledger{store: store} }

const (
	// maxEntryID is the longest id of an entry, in octets, and maxPage how many entries one read gives.
	maxEntryID = 256
	maxPage    = 10_000
	// plainBook is the book of what comes in no sequence.
	plainBook = "plain"
)

// Path is /ledger.
func (l *Ledger) Path() string { return LedgerPath }

// Example reads the ledger.
func (l *Ledger) Example() []byte {
	return []byte(`<soap:Envelope xmlns:soap="` + soap.V11.Namespace() + `"><soap:Body><add xmlns="` + Namespace + `"><id>a-1</id><amount>5</amount></add></soap:Body></soap:Envelope>`)
}

// WSDL is as in [Described].
func (l *Ledger) WSDL(location string) []byte {
	const sum = `<xs:element name="count" type="xs:long"/><xs:element name="checksum" type="xs:hexBinary"/>`
	return describeService("ledger", "Keeps entries. add appends one; read gives entries from a number on, of all books one after the other. checksum begins with 32 octets 0 for each book; each entry makes it SHA-256 of the checksum before, "+
		"the length of the id as four octets, the id and the amount as eight, big-endian; that of a read is those of all books, combined by exclusive or.", location, []port{
		{name: "add", request: `<xs:element name="id" type="xs:string"/><xs:element name="amount" type="xs:long"/>`, reply: sum},
		{name: "read", request: `<xs:element name="from" type="xs:long" minOccurs="0"/><xs:element name="most" type="xs:int" minOccurs="0"/>`,
			reply: sum + `<xs:element name="entry" minOccurs="0" maxOccurs="unbounded"><xs:complexType><xs:sequence><xs:element name="id" type="xs:string"/><xs:element name="amount" type="xs:long"/></xs:sequence></xs:complexType></xs:element>`},
	})
}

// Serve handles a message of no sequence.
func (l *Ledger) Serve(ctx context.Context, m *streamer.Message, reply func(*streamer.Message) error) error {
	l.plain.Lock()
	defer l.plain.Unlock()
	uri := ledgerPrefix + plainBook
	entry, err := l.store.Get(ctx, uri)
	if err != nil && !errors.Is(err, &ctxstore.Error{Code: ctxstore.NotFound}) {
		return err
	}
	b, err := parseBook(plainBook, entry.Value)
	if err != nil {
		return err
	}
	answer, err := l.handle(ctx, b, m)
	if err == nil && b.changed {
		_, err = l.store.Commit(ctx, uri, entry.Revision, b.value())
	}
	if err != nil {
		return err
	}
	return reply(answer)
}

// Transact implements [Transacting].
func (l *Ledger) Transact(ctx context.Context, tx *wsrm.Tx, m *streamer.Message) (*streamer.Message, error) {
	facts := negotiate.FactsOf(ctx)
	if facts == nil || facts.Sequence == "" {
		return nil, errors.New("a transaction without a sequence")
	}
	b, err := parseBook(strings.TrimPrefix(facts.Sequence, ctxstore.SequencePrefix), tx.Value())
	if err != nil {
		return nil, err
	}
	answer, err := l.handle(ctx, b, m)
	if err == nil && b.changed {
		tx.Set(b.value())
	}
	return answer, err
}

// handle reads a request, changes the book at hand, and gives the reply. Errors are those of the store and of the request's body.
func (l *Ledger) handle(ctx context.Context, b *book, m *streamer.Message) (*streamer.Message, error) {
	r := newRequest(m)
	name, c, err := l.read(ctx, b, r)
	o := &operation{name: name}
	var why *complaint
	switch {
	case errors.As(err, &why):
		b.changed = false
		var fault *streamer.Message
		err = o.refuse(r.version, why, func(m *streamer.Message) error {
			fault = m
			return nil
		})
		return fault, err
	case err != nil:
		return nil, err
	}
	return o.message(r.version, c), nil
}

func (l *Ledger) read(ctx context.Context, b *book, r *requestReader) (name string, c content, err error) {
	root, err := r.open()
	if err != nil {
		return "", c, err
	}
	switch root {
	case xml.Name{Space: Namespace, Local: "add"}:
		c, err = l.add(ctx, b, r)
	case xml.Name{Space: Namespace, Local: "read"}:
		c, err = l.entries(ctx, b, r)
	default:
		err = refuse("there is no operation %s here, only add and read of %s", soap.Name{Space: root.Space, Local: root.Local}, Namespace)
	}
	if err != nil {
		return "", c, err
	}
	return root.Local, c, r.close()
}

// add appends an entry to the book.
func (l *Ledger) add(ctx context.Context, b *book, r *requestReader) (content, error) {
	v, err := r.values([]string{"id", "amount"})
	if err != nil {
		return content{}, err
	}
	amount, err := strconv.ParseInt(collapse(v["amount"]), 10, 64)
	if err != nil {
		return content{}, refuse("%.40q is no amount: a whole number", v["amount"])
	}
	id := collapse(v["id"])
	if id == "" || len(id) > maxEntryID {
		return content{}, refuse("an id has 1 to %d octets, not %d", maxEntryID, len(id))
	}
	if err := b.append(ctx, l.store, ledgerEntry{id, amount}); err != nil {
		return content{}, err
	}
	var out bytes.Buffer
	writeSum(&out, b.count, b.sum)
	return content{octets: out.Bytes()}, nil
}

func writeSum(out *bytes.Buffer, count uint64, sum [32]byte) {
	element(out, "count", strconv.FormatUint(count, 10))
	element(out, "checksum", strings.ToUpper(hex.EncodeToString(sum[:])))
}

// entries reads from all books, that at hand as it is now.
func (l *Ledger) entries(ctx context.Context, own *book, r *requestReader) (content, error) {
	v, err := r.values(nil, "from", "most")
	if err != nil {
		return content{}, err
	}
	from, most := uint64(1), uint64(1000)
	for name, to := range map[string]*uint64{"from": &from, "most": &most} {
		text, ok := v[name]
		if !ok {
			continue
		}
		if *to, err = strconv.ParseUint(collapse(text), 10, 63); err != nil || *to == 0 && name == "from" {
			return content{}, refuse("%s: %.40q is no number from 1 on", name, text)
		}
	}
	books, err := l.books(ctx, own)
	if err != nil {
		return content{}, err
	}
	var out, list bytes.Buffer
	var count uint64
	var sum [32]byte
	left := min(most, maxPage)
	for _, b := range books {
		first := max(from, count+1) - count
		for i := first; i <= b.count && left > 0; left-- {
			e, err := b.entry(ctx, l.store, i)
			if err != nil {
				return content{}, fmt.Errorf("entry %d of book %s: %w", i, b.name, err)
			}
			list.WriteString("<entry>")
			element(&list, "id", e.id)
			element(&list, "amount", strconv.FormatInt(e.amount, 10))
			list.WriteString("</entry>")
			i++
		}
		count += b.count
		for i := range sum {
			sum[i] ^= b.sum[i]
		}
	}
	writeSum(&out, count, sum)
	out.Write(list.Bytes())
	return content{octets: out.Bytes()}, nil
}

// books are all books of the store, and the one at hand in its own place, ordered by name, the one of no sequence last.
func (l *Ledger) books(ctx context.Context, own *book) (books []*book, err error) {
	found := false
	take := func(name string, value []byte) error {
		if name == own.name {
			found = true
			books = append(books, own)
			return nil
		}
		b, err := parseBook(name, value)
		if err == nil && b.count > 0 {
			books = append(books, b)
		}
		return err
	}
	for info, err := range l.store.List(ctx, ctxstore.SequencePrefix) {
		if err != nil {
			return nil, err
		}
		entry, err := l.store.Get(ctx, info.URI)
		if err != nil {
			return nil, err
		}
		effect, err := wsrm.EffectOf(entry.Value)
		if err != nil || !isBook(effect) {
			continue // the state of another service
		}
		if err := take(strings.TrimPrefix(info.URI, ctxstore.SequencePrefix), effect); err != nil {
			return nil, err
		}
	}
	switch entry, err := l.store.Get(ctx, ledgerPrefix+plainBook); {
	case err == nil:
		if err := take(plainBook, entry.Value); err != nil {
			return nil, err
		}
	case !errors.Is(err, &ctxstore.Error{Code: ctxstore.NotFound}):
		return nil, err
	}
	if !found {
		books = append(books, own)
	}
	return books, nil
}
