package peer_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// lasting is a store that persists as far as anybody asks.
type lasting struct{ ctxstore.Store }

// startLedger is a server with a ledger over a store.
func startLedger(t testing.TB, store ctxstore.Store) *peer.Server {
	registry, err := peer.NewServices(peer.Ledger(store), peer.Echo())
	require.NoError(t, err)
	s, err := peer.Start(
		peer.Config{
			HTTP:     listen(t),
			Streams:  map[string]net.Listener{"tcp": listen(t)},
			Services: registry,
			Store:    store,
			Coders:   codersOf(store),
		},
	)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

func addition(id string, amount int) string {
	return envelope(soap.V11, "add", fmt.Sprintf("<id>%s</id><amount>%d</amount>", id, amount))
}

// checksum is what that of a book with these entries is.
func checksum(ids []string, amounts []int) string {
	var sum [32]byte
	for i, id := range ids {
		h := append([]byte(nil), sum[:]...)
		h = binary.BigEndian.AppendUint32(h, uint32(len(id)))
		h = append(h, id...)
		h = binary.BigEndian.AppendUint64(h, uint64(amounts[i]))
		sum = sha256.Sum256(h)
	}
	return fmt.Sprintf("%X", sum)
}

func ask(t testing.TB, s *session.Session, operation, request string) string {
	t.Helper()
	_, reply, err := exchange(t.Context(), s, "", strings.NewReader(request))
	require.NoError(t, err)
	return inner(t, operation, reply)
}

var entries = regexp.MustCompile(`<entry><id>([^<]*)</id><amount>(-?\d+)</amount></entry>`)

// What comes in a sequence is in a book of that sequence, all else in one more; both are read
// alike, and survive the server.
func TestLedger(t *testing.T) {
	store := lasting{newStore(t)}
	server := startLedger(t, store)
	cfg := config(t, true)
	cfg.Assurance, cfg.Ordered, cfg.Store = wsrm.ExactlyOnce, true, lasting{newStore(t)}
	sequenced := dial(t, server.URL(peer.LedgerPath), cfg)
	plain := dial(t, server.URL(peer.LedgerPath), config(t, false))
	const many = 300 // more than two pages
	var ids []string
	var amounts []int
	for n := 1; n <= many; n++ {
		ids, amounts = append(ids, "m"+strconv.Itoa(n)), append(amounts, n-5)
		got := ask(t, sequenced, "add", addition(ids[n-1], amounts[n-1]))
		assert.Equal(t, fmt.Sprintf("<count>%d</count><checksum>%s</checksum>", n, checksum(ids, amounts)), got)
	}
	assert.Contains(t, ask(t, plain, "add", addition("p&amp;q", 7)), "<count>1</count>")
	read := func(s *session.Session, inside string) (all string, list [][]string) {
		all = ask(t, s, "read", envelope(soap.V11, "read", inside))
		return all, entries.FindAllStringSubmatch(all, -1)
	}
	for _, s := range []*session.Session{plain, sequenced} {
		all, list := read(s, "")
		assert.Contains(t, all, fmt.Sprintf("<count>%d</count>", many+1))
		require.Len(t, list, many+1)
		for i, id := range ids {
			assert.Equal(t, id, list[i][1])
			assert.Equal(t, strconv.Itoa(amounts[i]), list[i][2])
		}
		assert.Equal(t, "p&amp;q", list[many][1])
		_, list = read(s, "<from>127</from><most>3</most>")
		require.Len(t, list, 3, "over the edge of a page")
		assert.Equal(t, []string{"m127", "m128", "m129"}, []string{list[0][1], list[1][1], list[2][1]})
		_, list = read(s, "<from>0</from><most>3</most>") // what a client sends that has nothing to say
		require.Len(t, list, 3)
		assert.Equal(t, ids[0], list[0][1])
		_, list = read(s, "<from>301</from>")
		require.Len(t, list, 1)
		_, list = read(s, "<from>302</from>")
		assert.Empty(t, list)
		all, list = read(s, "<most>0</most>")
		assert.Empty(t, list)
		assert.Contains(t, all, "<checksum>")
	}
	require.NoError(t, sequenced.Finish(t.Context()))
	require.NoError(t, server.Close())
	_, list := read(dial(t, startLedger(t, store).URL(peer.LedgerPath), config(t, false)), "<most>2</most>")
	assert.Len(t, list, 2)
}

func TestLedgerRefuses(t *testing.T) {
	server := startLedger(t, lasting{newStore(t)})
	cfg := config(t, true)
	cfg.Assurance, cfg.Store = wsrm.ExactlyOnce, lasting{newStore(t)}
	sender := fmt.Sprintf("fault %d: ", soap.Client)
	url := server.URL(peer.LedgerPath)
	sequenced, plain := dial(t, url, cfg), dial(t, url, config(t, false))
	for _, s := range []*session.Session{sequenced, plain} {
		for request, says := range map[string]string{
			envelope(soap.V11, "add", "<id>a</id>"):                     "amount is missing",
			envelope(soap.V12, "add", "<id>a</id><amount>1.5</amount>"): `"1.5" is no amount: a whole number`,
			addition(" ", 1):                              "an id has 1 to 256 octets, not 0",
			addition(strings.Repeat("x", 257), 1):         "an id has 1 to 256 octets, not 257",
			envelope(soap.V11, "read", "<from>-1</from>"): `from: "-1" is no number from 0 on`,
			envelope(soap.V11, "remove", ""): "there is no operation {urn:hhfr:peer:1}remove here, " +
				"only add and read of urn:hhfr:peer:1",
			strings.Replace(addition("a", 1), "</e:Envelope>", "</e:Envelope><x/>", 1): "there is something behind " +
				"the envelope",
		} {
			assert.Equal(t, sender+says, ask(t, s, "add", request), request)
		}
		assert.Contains(
			t,
			ask(t, s, "read", envelope(soap.V11, "read", "")),
			"<count>0</count>",
			"what is refused leaves nothing",
		)
	}
}

// Services without a transaction are called under an assurance, too, and what is no POST is
// answered as ever.
func TestServicesInSequences(t *testing.T) {
	server := startLedger(t, lasting{newStore(t)})
	cfg := config(t, true)
	cfg.Assurance, cfg.Store = wsrm.ExactlyOnce, lasting{newStore(t)}
	s := dial(t, server.URL(peer.EchoPath), cfg)
	_, body, err := exchange(t.Context(), s, "", strings.NewReader("<any/>"))
	require.NoError(t, err)
	assert.Equal(t, "<any/>", body)
	head, body, err := exchange(t.Context(), s, "GET /ledger?wsdl HTTP/1.1\n\n", strings.NewReader(""))
	require.NoError(t, err)
	assert.Empty(t, head, "that is the default one")
	assert.Contains(t, body, `<wsdl:operation name="add">`)
	assert.Contains(t, body, `<wsdl:operation name="read">`)
	head, _, err = exchange(t.Context(), s, "POST /nothing HTTP/1.1\n\n", strings.NewReader("<any/>"))
	require.NoError(t, err)
	assert.Contains(t, head, "404")
	posted, err := s.Post(
		t.Context(),
		streamer.NewMessage([]byte("POST /ledger HTTP/1.1\r\n\r\n"), []byte(addition("x", 1))),
	)
	require.NoError(t, err)
	require.NoError(t, s.Finish(t.Context()))
	assert.NoError(t, posted.Err())
}

// Streams that break behind every few messages lose nothing and repeat nothing.
func TestLedgerOverBrokenStreams(t *testing.T) {
	store := lasting{newStore(t)}
	registry, err := peer.NewServices(peer.Ledger(store))
	require.NoError(t, err)
	misbehave, err := peer.ParseMisbehavior("close-after=7")
	require.NoError(t, err)
	server, err := peer.Start(
		peer.Config{
			HTTP:      listen(t),
			Streams:   map[string]net.Listener{"tcp": listen(t)},
			Services:  registry,
			Store:     store,
			Coders:    codersOf(store),
			Misbehave: misbehave,
		},
	)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Close()) })
	cfg := config(t, true)
	cfg.Assurance, cfg.Ordered, cfg.Store, cfg.Reconnect = wsrm.ExactlyOnce, true, lasting{newStore(t)}, 1<<40
	s := dial(t, server.URL(peer.LedgerPath), cfg)
	for n := 1; n <= 50; n++ {
		assert.Contains(t, ask(t, s, "add", addition("m", n)), fmt.Sprintf("<count>%d</count>", n))
	}
	require.NoError(t, s.Finish(t.Context()))
}
