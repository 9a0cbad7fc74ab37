package wsrm_test

import (
	"encoding/base64"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/wsrm"
	"github.com/hhfr/hhfr/pkg/wsrm/header"
)

// soapForm is the SOAP form of sequences as the carrier of a world: messages are envelopes with
// header blocks, which are lost, come twice and overtake each other, each is sent again until it is
// acknowledged, and is answered by what is committed at its receiver.
type soapForm struct {
	w       *world
	version string
	again   int // envelopes that were sent again
}

// resendAfter is how long an acknowledgement is waited for.
const resendAfter = 2 * time.Second

var soapNames = [2]string{"urn:there", "urn:back"} // of the sequence of an end

// carry carries what an end sends or says.
func (f *soapForm) carry(from int, a wsrm.Action) {
	if a.Kind == wsrm.Say {
		f.post(from, f.blocks(from), nil)
		return
	}
	f.send(from, a.Number, append([]byte(nil), a.Message...), false)
}

// send sends a message until it is acknowledged, as long as its end and the connection live.
func (f *soapForm) send(from int, number uint64, message []byte, again bool) {
	b := f.blocks(from)
	b.Sequence, b.Number = soapNames[from], number
	if again {
		f.again++
		b.AckRequested = []string{soapNames[from]}
	}
	f.post(from, b, message)
	carrier, machine := f.w.carrier, f.w.ends[from].machine
	f.w.After(resendAfter, func() {
		if f.w.carrier != carrier || f.w.ends[from].machine != machine {
			return
		}
		if _, done, _ := machine.Positions(); number > done && !machine.HasArrived(number) {
			f.send(from, number, message, true)
		}
	})
}

// blocks are what an end says with whatever it sends: all that is committed.
func (f *soapForm) blocks(from int) *header.Blocks {
	b := &header.Blocks{Version: f.version}
	if ranges := f.w.ends[from].machine.Committed(); len(ranges) > 0 {
		b.Acknowledgements = []header.Acknowledgement{{Sequence: soapNames[1-from], Ranges: ranges}}
	}
	return b
}

// post puts an envelope on the way: one in eight is lost, one in eight comes twice.
func (f *soapForm) post(from int, b *header.Blocks, message []byte) {
	head, _ := b.Elements(xmlns.WSA)
	var body []soap.Element
	if b.Number > 0 {
		body = []soap.Element{{Name: soap.Name{Space: "urn:m", Local: "m"},
			Text: base64.StdEncoding.EncodeToString(message)}}
	}
	octets, err := soap.Build(&soap.Envelope{Version: soap.V12, Header: head, Body: body})
	if err != nil {
		f.w.failf("end %d: %v", from, err)
		return
	}
	copies := []int{0, 2, 1, 1, 1, 1, 1, 1}[f.w.rand.IntN(8)]
	for range copies {
		carrier := f.w.carrier
		f.w.After(time.Duration(f.w.rand.Int64N(int64(300*time.Millisecond))), func() {
			if f.w.carrier == carrier {
				f.arrive(1-from, octets)
			}
		})
	}
}

// arrive has an end process an envelope, and answer a message.
func (f *soapForm) arrive(at int, octets []byte) {
	e := f.w.ends[at]
	parsed, err := soap.Parse(octets, soap.Limits{})
	if err != nil {
		f.w.failf("end %d: %v", at, err)
		return
	}
	b := header.Parse(parsed)
	if b == nil { // nothing is committed yet
		return
	}
	if len(b.Broken) > 0 {
		f.w.failf("end %d: %v", at, b.Broken)
	}
	for _, ack := range b.Acknowledgements {
		e.take(wsrm.Acknowledgement(ack.Ranges, ack.Nacks, false))
	}
	if b.Number == 0 {
		return
	}
	message, err := base64.StdEncoding.DecodeString(parsed.Body[0].Text)
	if err != nil {
		f.w.failf("end %d: %v", at, err)
	}
	e.take(wsrm.Event{Kind: wsrm.Arrived, Number: b.Number, Message: message})
	if e.machine != nil && f.w.up {
		f.post(at, f.blocks(at), nil)
	}
}

// acknowledged reports whether all messages of both ends are.
func (f *soapForm) acknowledged() bool {
	for _, e := range f.w.ends {
		if e.machine == nil || len(e.acked) < e.ids {
			return false
		}
	}
	return true
}

// Any cuts of the connection, any crashes, any loss, copies and overtaking of envelopes: exactly
// once holds in the SOAP form, too.
func TestSimulationInSOAP(t *testing.T) { simulateInSOAP(t, 0, simulations/32) }

func simulateInSOAP(t *testing.T, from, n uint64) {
	t.Helper()
	again := 0
	for seed := from; seed < from+n; seed++ {
		p := randomPlan(seed)
		p.cfg.Assurance, p.cfg.Ordered, p.volatile = wsrm.ExactlyOnce, seed%2 == 0, false
		p.messages = [2]int{min(p.messages[0], 40), min(p.messages[1], 20)}
		p.sizes = func(r *rand.Rand) int { return r.IntN(100) }
		w := newWorld(p)
		w.form = &soapForm{w: w, version: []string{"1.0", "1.1"}[seed/2%2]}
		ended := w.run(30*24*time.Hour, w.form.acknowledged)
		require.Empty(t, w.fails, "seed %d: %+v", seed, p)
		require.True(t, ended, "seed %d: after %v: %+v", seed, w.Now.Sub(start), p)
		check(t, w)
		require.False(t, t.Failed(), "seed %d: %+v", seed, p)
		again += w.form.again
	}
	require.Positive(t, again)
}
