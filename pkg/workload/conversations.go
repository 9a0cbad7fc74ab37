package workload

import (
	"encoding/hex"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"time"
)

// Conversation is what one client and a service say to each other in HTTP, as programs of that kind
// do it: with their heads, and with values that change from call to call as theirs do.
type Conversation struct {
	Name string
	// Every is the time from one call to the next one, Took that of the service.
	Every, Took time.Duration
	// Closed: each call has a connection of its own, which the client ends.
	Closed bool

	call func(t *dialogue, i int) (request, reply []byte)
}

// Conversations are those of four kinds of systems that speak SOAP all day.
func Conversations() []Conversation {
	return []Conversation{
		{"ONVIF polling", 10 * time.Second, 2 * time.Second, false, (*dialogue).poll},
		{"ONVIF polling, a connection each", 10 * time.Second, 2 * time.Second, true, (*dialogue).pollAnew},
		{"CWMP Inform", 5 * time.Minute, 80 * time.Millisecond, true, (*dialogue).inform},
		{"EWS", 30 * time.Second, 60 * time.Millisecond, false, (*dialogue).mail},
		{"IHE query", 20 * time.Second, 250 * time.Millisecond, false, (*dialogue).query},
	}
}

// Calls yields requests with their replies, without end.
func (c Conversation) Calls(seed uint64) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		t := &dialogue{Rand: generator(seed), now: time.Date(2026, 3, 14, 9, 27, 3, 14e6, time.UTC)}
		for i := 0; ; i++ {
			if !yield(c.call(t, i)) {
				return
			}
			t.now = t.now.Add(c.Every + time.Duration(t.IntN(40))*time.Millisecond)
		}
	}
}

// dialogue is the state of a conversation.
type dialogue struct {
	*rand.Rand
	now     time.Time
	inbox   []mailItem
	counter [4]int64
}

// message is a head with the length of the body, and the body.
func message(head, body string) []byte {
	head = strings.ReplaceAll(head, "\n", "\r\n")
	return fmt.Appendf(nil, "%sContent-Length: %d\r\n\r\n%s", head, len(body), body)
}

// date is the field of that name.
func (t *dialogue) date() string { return t.now.Format("Mon, 02 Jan 2006 15:04:05 GMT") }

// second is a time without a fraction.
func second(at time.Time) string { return at.Format("2006-01-02T15:04:05Z") }

// hex is so many random bytes.
func (t *dialogue) hex(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(t.Uint32())
	}
	return hex.EncodeToString(b)
}
