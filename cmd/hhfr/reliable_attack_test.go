package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/peer"
)

// reliableServer is hhfr serve with sequences of WS-ReliableMessaging, in a folder.
type reliableServer struct {
	t       *testing.T
	dir     string
	url     string // behind which the name of a service stands
	stop    func()
	clients map[string]*http.Client // by the address that they call from
}

func startReliable(t *testing.T) *reliableServer {
	s := &reliableServer{t: t, dir: t.TempDir(), clients: map[string]*http.Client{}}
	for _, from := range []string{"127.0.0.1", "127.0.0.66", "127.0.0.67"} {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		transport := &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 16}
		t.Cleanup(transport.CloseIdleConnections)
		s.clients[from] = &http.Client{Transport: transport}
	}
	s.start()
	t.Cleanup(func() { s.stop() })
	return s
}

func (s *reliableServer) start() {
	url, stop := serveHere(s.t, "--soap-rm", "all", "--store", s.dir)
	s.url = strings.TrimSuffix(url, "echo")
	s.stop = func() {
		for _, c := range s.clients {
			c.CloseIdleConnections()
		}
		stop()
	}
}

func (s *reliableServer) restart() {
	s.stop()
	s.start()
}

const (
	rmSpace  = "http://docs.oasis-open.org/ws-rx/wsrm/200702"
	wsaSpace = "http://www.w3.org/2005/08/addressing"
)

func addressed(action, id, header, body string) string {
	return `<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope" xmlns:a="` + wsaSpace + `" xmlns:r="` +
		rmSpace + `"><s:Header><a:Action>` + action + `</a:Action><a:MessageID>` + id + `</a:MessageID>` +
		`<a:ReplyTo><a:Address>` + wsaSpace + `/anonymous</a:Address></a:ReplyTo>` + header +
		`</s:Header><s:Body>` + body + `</s:Body></s:Envelope>`
}

// post sends an envelope from an address, and gives what comes back.
func (s *reliableServer) post(from, path, envelope string) string {
	const contentType = "application/soap+xml; charset=utf-8"
	response, err := s.clients[from].Post(s.url+path, contentType, strings.NewReader(envelope))
	if !assert.NoError(s.t, err) {
		return ""
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	assert.NoError(s.t, err)
	return string(text)
}

var identifierIn = regexp.MustCompile(`CreateSequenceResponse.*?Identifier[^>]*>([^<]+)<`)

func creating(id, offer string) string {
	if offer != "" {
		offer = `<r:Offer><r:Identifier>` + offer + `</r:Identifier><r:Endpoint><a:Address>` + wsaSpace +
			`/anonymous</a:Address></r:Endpoint></r:Offer>`
	}
	return addressed(rmSpace+"/CreateSequence", id, "", `<r:CreateSequence><r:AcksTo><a:Address>`+
		wsaSpace+`/anonymous</a:Address></r:AcksTo>`+offer+`</r:CreateSequence>`)
}

// create asks for a sequence; empty: it is refused. offer may be empty.
func (s *reliableServer) create(from, id, offer string) (sequence, answer string) {
	answer = s.post(from, "ledger", creating(id, offer))
	if m := identifierIn.FindStringSubmatch(answer); m != nil {
		return m[1], answer
	}
	return "", answer
}

// send sends a message in a sequence.
func (s *reliableServer) send(from, path, sequence string, number int, text string) string {
	header := fmt.Sprintf(`<r:Sequence s:mustUnderstand="true"><r:Identifier>%s</r:Identifier>`+
		`<r:MessageNumber>%d</r:MessageNumber></r:Sequence>`, sequence, number)
	return s.post(from, path, addressed("urn:add", fmt.Sprintf("urn:m:%s:%d:%s", sequence, number, text), header,
		fmt.Sprintf(`<add xmlns="%s"><id>%s</id><amount>1</amount></add>`, peer.Namespace, text)))
}

func (s *reliableServer) terminate(from, sequence string) string {
	return s.post(from, "ledger", addressed(rmSpace+"/TerminateSequence", "urn:end:"+sequence, "",
		`<r:TerminateSequence><r:Identifier>`+sequence+`</r:Identifier></r:TerminateSequence>`))
}

var entryIn = regexp.MustCompile(`<id>([^<]+)</id>`)

// ledger is what messages had an effect.
func (s *reliableServer) ledger() (ids []string) {
	answer := s.post("127.0.0.1", "ledger", addressed("urn:read", "urn:read", "", `<read xmlns="`+peer.Namespace+`"/>`))
	for _, m := range entryIn.FindAllStringSubmatch(answer, -1) {
		ids = append(ids, m[1])
	}
	return ids
}

// files counts those of the store.
func (s *reliableServer) files() (n int) {
	require.NoError(s.t, filepath.WalkDir(s.dir, func(_ string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		return err
	}))
	return n
}

const first = `AcknowledgementRange Lower="1" Upper="1"`

// A CreateSequence of another client with the same MessageID takes nothing of the first one's: each
// has a sequence of its own, and no message that is acknowledged is lost.
func TestSequencesAreNotTakenOver(t *testing.T) {
	s := startReliable(t)
	for _, to := range []string{"127.0.0.66", "127.0.0.1"} { // another host, and one behind the same address
		mark := strings.ReplaceAll(to, ".", "-")
		good, _ := s.create("127.0.0.1", "urn:uuid:same"+mark, "")
		evil, _ := s.create(to, "urn:uuid:same"+mark, "")
		require.NotEmpty(t, good)
		require.NotEmpty(t, evil)
		assert.NotEqual(t, good, evil)
		assert.Contains(t, s.send(to, "ledger", evil, 1, "EVIL"+mark), first)
		assert.Contains(t, s.send("127.0.0.1", "ledger", good, 1, "GOOD"+mark), first)
		assert.Contains(t, s.ledger(), "EVIL"+mark)
		assert.Contains(t, s.ledger(), "GOOD"+mark)

		holder, _ := s.create("127.0.0.1", "urn:uuid:secret"+mark, "")
		assert.Contains(t, s.send("127.0.0.1", "echo", holder, 1, "secret"), "secret")
		thief, _ := s.create(to, "urn:uuid:secret"+mark, "")
		assert.NotEqual(t, holder, thief)
		assert.NotContains(t, s.send(to, "echo", thief, 1, "guess"), "secret")
	}
}

// Devices that were cloned send the same bytes, from one address: what each sends is handled, none
// sees a reply to another, in whatever order they come, and one has the Offer.
func TestClonedDevices(t *testing.T) {
	for name, late := range map[string]bool{"before the other is used": false, "behind that": true} {
		t.Run(name, func(t *testing.T) {
			s := startReliable(t)
			offer := "urn:uuid:offer"
			says := func(sequence, text string) string {
				answer := s.send("127.0.0.1", "echo", sequence, 1, text)
				assert.Contains(t, answer, first)
				assert.Contains(t, answer, ">"+text+"<")
				return answer
			}
			a, accepted := s.create("127.0.0.1", "urn:uuid:clone", offer)
			assert.Contains(t, accepted, "Accept>")
			var answers []string
			if late {
				answers = append(answers, says(a, "of-a"))
			}
			b, accepted := s.create("127.0.0.1", "urn:uuid:clone", offer)
			assert.NotEqual(t, a, b)
			assert.Equal(t, !late, strings.Contains(accepted, "Accept>"))
			if !late {
				answers = append(answers, says(a, "of-a"))
			}
			answers = append(answers, says(b, "of-b"))
			inOffer := 0
			for _, answer := range answers {
				inOffer += strings.Count(answer, "Identifier>"+offer+"<")
			}
			assert.Equal(t, 1, inOffer, "two sequences of replies would have one identifier")
			for range 2 { // and again, also over a restart: the reply that is stored, its own one
				assert.Contains(t, s.send("127.0.0.1", "echo", a, 1, "of-a"), ">of-a<")
				assert.Contains(t, s.send("127.0.0.1", "echo", b, 1, "of-b"), ">of-b<")
				s.restart()
			}
		})
	}
}

// Of CreateSequences that come at once, each has a sequence; no Offer is given twice, and of those
// that nobody uses few take room in the store.
func TestCreateSequencesAtOnce(t *testing.T) {
	s := startReliable(t)
	before := s.files()
	at := func(n int, id func(i int) string, offer string) (sequences map[string]bool, accepted int) {
		var mu sync.Mutex
		var wait sync.WaitGroup
		sequences = map[string]bool{}
		for i := range n {
			wait.Go(func() {
				sequence, answer := s.create("127.0.0.1", id(i), offer)
				mu.Lock()
				defer mu.Unlock()
				sequences[sequence] = true
				if strings.Contains(answer, "Accept>") {
					accepted++
				}
			})
		}
		wait.Wait()
		delete(sequences, "")
		return sequences, accepted
	}
	for round := range 4 {
		sequences, _ := at(16, func(int) string { return fmt.Sprint("urn:uuid:one-", round) }, "")
		assert.Len(t, sequences, 16)
		assert.Equal(t, before+9, s.files())
		sequences, accepted := at(8, func(i int) string { return fmt.Sprint("urn:uuid:", round, "-", i) },
			fmt.Sprint("urn:uuid:offer-", round))
		assert.Len(t, sequences, 1)
		assert.Equal(t, 1, accepted)
		before += 10
	}
}

// Connections that are cut before, while or after the answer to CreateSequence is written: the same
// bytes once more get a sequence that works, with the Offer, and little is left behind.
func TestCreateSequencesThatAreCut(t *testing.T) {
	s := startReliable(t)
	before := s.files()
	offer := "urn:uuid:offer"
	envelope := creating("urn:uuid:cut", offer)
	at := strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/")
	for i := range 40 {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", at)
		require.NoError(t, err)
		_, err = fmt.Fprintf(conn, "POST /echo HTTP/1.1\r\nHost: %s\r\nContent-Type: application/soap+xml\r\n"+
			"Content-Length: %d\r\n\r\n%s", at, len(envelope), envelope)
		require.NoError(t, err)
		if i%2 == 0 {
			_, err = conn.Read(make([]byte, 1))
			require.NoError(t, err)
		}
		require.NoError(t, conn.(*net.TCPConn).SetLinger(0)) // a reset
		require.NoError(t, conn.Close())
	}
	sequence, _ := s.create("127.0.0.1", "urn:uuid:cut", offer)
	answer := s.send("127.0.0.1", "echo", sequence, 1, "text")
	assert.Contains(t, answer, ">text<")
	assert.Contains(t, answer, "Identifier>"+offer+"<")
	assert.LessOrEqual(t, s.files(), before+11, "the sequence and its state, and those that may come late")
}

// One address cannot keep the others out by sequences that it creates, whether it uses them or
// ends them, also not over a restart; nor fill the store.
func TestOneAddressKeepsNobodyOut(t *testing.T) {
	t.Parallel() // it waits for the disk
	s := startReliable(t)
	before := s.files()
	each := func(many int, do func(i int)) {
		var wait sync.WaitGroup
		next := make(chan int)
		for range 8 {
			wait.Go(func() {
				for i := range next {
					do(i)
				}
			})
		}
		for i := range many {
			next <- i
		}
		close(next)
		wait.Wait()
	}
	served := func(mark string) {
		sequence, answer := s.create("127.0.0.66", "urn:uuid:other"+mark, "")
		require.NotEmpty(t, sequence, answer)
		assert.Contains(t, s.send("127.0.0.66", "ledger", sequence, 1, mark), first)
	}
	each(1026, func(i int) { s.create("127.0.0.1", fmt.Sprint("urn:uuid:unused-", i), "") })
	served("unused")
	assert.LessOrEqual(t, s.files(), before+512+2)
	s.restart()
	served("restarted")
	sequence, _ := s.create("127.0.0.1", "urn:uuid:still", "")
	assert.NotEmpty(t, sequence, "what nobody used makes place")
	assert.LessOrEqual(t, s.files(), before+512+4)

	each(530, func(i int) {
		sequence, answer := s.create("127.0.0.67", fmt.Sprint("urn:uuid:ended-", i), "")
		if assert.NotEmpty(t, sequence, answer) {
			assert.Contains(t, s.terminate("127.0.0.67", sequence), "TerminateSequenceResponse")
		}
	})
	served("ended")
	assert.LessOrEqual(t, s.files(), before+512+512+16+6)
}
