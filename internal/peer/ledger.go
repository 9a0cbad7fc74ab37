package peer

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/wsrm"
	"github.com/hhfr/hhfr/pkg/wsrm/soaprm"
)

// LedgerPath is where a [Ledger] stands.
const LedgerPath = "/ledger"

// Ledger keeps entries in a store, that of the server's sequences, to see what became of messages:
// each add is an effect, and read tells all of them. What comes in a sequence is appended in the
// transaction of its message, to a book of that sequence; all else goes to one further book.
// Entries are as durable as the store.
func Ledger(store ctxstore.Store) Service {
	return Service{
		Path: LedgerPath, Handler: &ledger{store: store}, Transactional: true,
		WSDL: ledgerWSDL, Example: exampleOf("add", "<id>a-1</id><amount>5</amount>"),
	}
}

type ledger struct {
	store ctxstore.Store
	plain sync.Mutex // held while the further book is changed
}

const (
	// maxEntryID is the longest id of an entry, in bytes, and maxPage how many entries one read
	// gives.
	maxEntryID = 256
	maxPage    = 10_000
	// plainBook is the book of what comes in no sequence.
	plainBook = "plain"
)

func ledgerWSDL(location string) []byte {
	const (
		documentation = "Keeps entries. add appends one; read gives entries from a number on, of all books one " +
			"after the other; from 0, as from 1, that is from the start. checksum begins with 32 octets 0 for each " +
			"book; each entry makes it SHA-256 of the checksum before, the length of the id as four octets, the id " +
			"and the amount as eight, big-endian; that of a read is those of all books, combined by exclusive or."
		entry = `<xs:element name="id" type="xs:string"/><xs:element name="amount" type="xs:long"/>`
		sum   = `<xs:element name="count" type="xs:long"/><xs:element name="checksum" type="xs:hexBinary"/>`
	)
	return describeService("ledger", documentation, location, []port{
		{name: "add", request: entry, reply: sum},
		{
			name: "read",
			request: `<xs:element name="from" type="xs:long" minOccurs="0"/>` +
				`<xs:element name="most" type="xs:int" minOccurs="0"/>`,
			reply: sum + `<xs:element name="entry" minOccurs="0" maxOccurs="unbounded"><xs:complexType><xs:sequence>` +
				entry + `</xs:sequence></xs:complexType></xs:element>`,
		},
	})
}

// ServeHTTP handles one message.
func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := newEnvelope(r)
	tx, sequence := transactionOf(r.Context())
	handle := l.alone
	if tx != nil {
		handle = func(ctx context.Context, e *envelope) (string, content, error) {
			return l.within(ctx, tx, sequence, e)
		}
	}
	name, c, err := handle(r.Context(), e)
	switch why := (*complaint)(nil); {
	case err == nil:
		sendResult(w, r, e.version, name, c)
	case tx != nil && !errors.As(err, &why):
		// The transaction ends without effect, and the message comes again.
		panic(fmt.Errorf("%w: %w", http.ErrAbortHandler, err))
	default:
		sendError(w, r, e.version, err)
	}
}

// alone handles a message of no sequence.
func (l *ledger) alone(ctx context.Context, e *envelope) (name string, c content, err error) {
	l.plain.Lock()
	defer l.plain.Unlock()
	uri := ledgerPrefix + plainBook
	stored, err := l.store.Get(ctx, uri)
	if err != nil && !errors.Is(err, ctxstore.NotFound) {
		return "", c, err
	}
	b, err := parseBook(plainBook, stored.Value)
	if err != nil {
		return "", c, err
	}
	name, c, err = l.handle(ctx, b, e)
	if err == nil && b.changed {
		_, err = l.store.Commit(ctx, uri, stored.Revision, b.value())
	}
	return name, c, err
}

// InTransaction gives a service that is transactional the transaction of its message, with the URI
// of the sequence's state.
func InTransaction(ctx context.Context, tx *wsrm.Tx, sequence string) context.Context {
	return context.WithValue(ctx, transactionKey{}, givenTransaction{tx, sequence})
}

type transactionKey struct{}

type givenTransaction struct {
	tx       *wsrm.Tx
	sequence string
}

// transactionOf is that of a message, and the URI of its sequence's state: of a session, of
// WS-ReliableMessaging in plain SOAP, or as it was given. nil: it is in none.
func transactionOf(ctx context.Context) (tx *wsrm.Tx, sequence string) {
	if given, is := ctx.Value(transactionKey{}).(givenTransaction); is {
		return given.tx, given.sequence
	}
	if tx, sequence = soaprm.TxOf(ctx); tx != nil {
		return tx, sequence
	}
	if facts := responder.FactsOf(ctx); facts != nil {
		sequence = facts.Sequence
	}
	return responder.TxOf(ctx), sequence
}

// within handles a message in its transaction.
func (l *ledger) within(
	ctx context.Context, tx *wsrm.Tx, sequence string, e *envelope,
) (name string, c content, err error) {
	if sequence == "" {
		return "", c, errors.New("a transaction without a sequence")
	}
	b, err := parseBook(strings.TrimPrefix(sequence, ctxstore.SequencePrefix), tx.Value())
	if err != nil {
		return "", c, err
	}
	name, c, err = l.handle(ctx, b, e)
	if err == nil && b.changed {
		tx.Set(b.value())
	}
	return name, c, err
}

// handle reads a requestReader, changes the book at hand, and gives the name of the operation with
// its result. Errors are refusals, and those of the store and of the requestReader's body.
func (l *ledger) handle(ctx context.Context, b *book, e *envelope) (name string, c content, err error) {
	root, err := e.open()
	if err != nil {
		return "", c, err
	}
	switch root {
	case xml.Name{Space: Namespace, Local: "add"}:
		c, err = l.add(ctx, b, e)
	case xml.Name{Space: Namespace, Local: "read"}:
		c, err = l.entries(ctx, b, e)
	default:
		called := soap.Name{Space: root.Space, Local: root.Local}
		err = refuse("there is no operation %s here, only add and read of %s", called, Namespace)
	}
	if err != nil {
		return "", c, err
	}
	return root.Local, c, e.close()
}

// add appends an entry to the book.
func (l *ledger) add(ctx context.Context, b *book, e *envelope) (content, error) {
	v, err := e.values([]string{"id", "amount"})
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
	return content{text: out.Bytes()}, nil
}

func writeSum(out *bytes.Buffer, count uint64, sum [32]byte) {
	element(out, "count", strconv.FormatUint(count, 10))
	element(out, "checksum", strings.ToUpper(hex.EncodeToString(sum[:])))
}

// entries reads from all books, that at hand as it is now.
func (l *ledger) entries(ctx context.Context, own *book, e *envelope) (content, error) {
	v, err := e.values(nil, "from", "most")
	if err != nil {
		return content{}, err
	}
	from, most := uint64(1), uint64(1000)
	for name, to := range map[string]*uint64{"from": &from, "most": &most} {
		text, ok := v[name]
		if !ok {
			continue
		}
		if *to, err = strconv.ParseUint(collapse(text), 10, 63); err != nil {
			return content{}, refuse("%s: %.40q is no number from 0 on", name, text)
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
			found, err := b.entry(ctx, l.store, i)
			if err != nil {
				return content{}, fmt.Errorf("entry %d of book %s: %w", i, b.name, err)
			}
			list.WriteString("<entry>")
			element(&list, "id", found.id)
			element(&list, "amount", strconv.FormatInt(found.amount, 10))
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
	return content{text: out.Bytes()}, nil
}

// books are all books of the store, and the one at hand in its own place, ordered by name, the one
// of no sequence last.
func (l *ledger) books(ctx context.Context, own *book) (books []*book, err error) {
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
	case !errors.Is(err, ctxstore.NotFound):
		return nil, err
	}
	if !found {
		books = append(books, own)
	}
	return books, nil
}
