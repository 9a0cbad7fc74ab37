package arq_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/arq"
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/timeline"
	"github.com/hhfr/hhfr/internal/window"
	"github.com/hhfr/hhfr/internal/wire"
	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/soap/addressing"
	"github.com/hhfr/hhfr/pkg/wsrm/header"
)

// reading is an envelope of a sensor, with values that nobody can predict.
func reading(n int, r *rand.Rand) []byte {
	return fmt.Appendf(nil, `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Header/><s:Body>`+
		`<ReportReading xmlns="urn:example:sensors"><Station>NL-%04d</Station><Time>2026-01-02T03:%02d:%02dZ</Time>`+
		`<Temperature>%d.%d</Temperature><Humidity>%d</Humidity><Battery>3.%02d</Battery></ReportReading></s:Body>`+
		`</s:Envelope>`, r.IntN(10_000), n/60, n%60, 10+r.IntN(20), r.IntN(10), 10+r.IntN(90), r.IntN(100))
}

// form is how an engine's packets go in datagrams: as their bytes, where there is no SOAP.
type form struct {
	name     string
	datagram int
	soap     bool // one message in a datagram, in the header blocks of WS-ReliableMessaging 1.1
	messages [][]byte
}

const sequenceHere = "urn:uuid:0cbb9b3e-5a4c-4d2e-9a1f-6f5f7d1c2b3a"

// blocksOf is a packet in SOAP over UDP (OASIS, 1.1): an envelope with the addressing properties
// that the binding wants. What the blocks have no place for (the floor, the number of a packet and
// its echo, by which round trips are measured) the peer gets for nothing.
func blocksOf(t testing.TB, p *window.Packet) []byte {
	b := &header.Blocks{Version: "1.1"}
	at := addressing.Properties{Space: xmlns.WSA, To: "soap.udp://sensors.example:4000/",
		Action: xmlns.WSRM + "/SequenceAcknowledgement", MessageID: addressing.NewID()}
	if p.HasAck {
		ack := header.Acknowledgement{Sequence: sequenceHere, Final: p.Ack.Final, None: p.Ack.Done == 0}
		if p.Ack.Done > 0 {
			ack.Ranges = append(ack.Ranges, [2]uint64{1, p.Ack.Done})
		}
		for _, r := range p.Ack.Ranges {
			ack.Ranges, ack.None = append(ack.Ranges, [2]uint64{r.First, r.Last}), false
		}
		b.Acknowledgements = []header.Acknowledgement{ack}
	}
	if p.Request {
		b.AckRequested = []string{sequenceHere}
	}
	if len(p.Units) == 0 {
		head, _ := b.Elements(xmlns.WSA)
		octets, err := soap.Build(&soap.Envelope{Version: soap.V11, Header: append(at.Blocks(), head...)})
		require.NoError(t, err)
		return octets
	}
	require.Len(t, p.Units, 1)
	require.True(t, p.Units[0].First && p.Units[0].Last)
	b.Sequence, b.Number = sequenceHere, p.Units[0].Number
	at.Action = "urn:example:sensors/ReportReading"
	a, err := soap.Split(p.Units[0].Payload, soap.Limits{})
	require.NoError(t, err)
	head, _ := b.Elements(xmlns.WSA)
	octets, err := a.Rewrite(nil, append(at.Blocks(), head...))
	require.NoError(t, err)
	read, err := soap.Split(octets, soap.Limits{})
	require.NoError(t, err)
	require.Equal(t, b, header.Parse(&read.Envelope), "they are what the peer reads")
	return octets
}

// carried is what carrying took.
type carried struct {
	octets    int64 // of datagrams in both directions, with the headers of IP and UDP
	datagrams int64
	took      time.Duration // until all is acknowledged
	waited    time.Duration // of a message until it is delivered, in the mean
}

// carry sends messages from one engine to another over a link: one after each interval, or all as
// soon as the window allows.
func carry(t testing.TB, profile string, every time.Duration, f form) (c carried) {
	t.Helper()
	p, err := link.ParseProfile(profile)
	require.NoError(t, err)
	var ends [2]*arq.Endpoint
	var paths [2]*link.Path
	for i := range ends {
		ends[i], err = arq.New(arq.Config{Datagram: f.datagram})
		require.NoError(t, err)
		paths[i], err = link.NewPath(p, i)
		require.NoError(t, err)
	}
	start := time.Unix(1e9, 0)
	line := timeline.Timeline{Now: start}
	var got [][]byte
	var done, wakes uint64
	var step func(end int, ev arq.Event) error
	transmit := func(end int, packet *window.Packet) {
		octets := packet.Append(nil)
		size := len(octets)
		if f.soap {
			size = len(blocksOf(t, packet))
		}
		c.datagrams++
		c.octets += int64(size + 28)
		for _, at := range paths[end].Send(line.Now, size) {
			line.After(at.Sub(line.Now), func() {
				var arrived window.Packet
				require.NoError(t, arrived.Parse(octets))
				require.NoError(t, step(1-end, arq.Event{Kind: arq.Arrived, Packet: &arrived}))
				require.NoError(t, step(1-end, arq.Event{Kind: arq.Wake}))
			})
		}
	}
	alarms := [2]uint64{}
	step = func(end int, ev arq.Event) error {
		actions, err := ends[end].Step(line.Now, ev)
		var commits []uint64
		var at time.Time
		for i := range actions {
			switch a := &actions[i]; a.Kind {
			case arq.Transmit:
				transmit(end, a.Packet)
			case arq.Deliver:
				c.waited += line.Now.Sub(start.Add(time.Duration(len(got)) * every))
				got = append(got, bytes.Clone(a.Message))
				commits = append(commits, a.Number)
			case arq.Acknowledged:
				done = a.Number
			case arq.WakeAt:
				wakes++
				alarms[end], at = wakes, a.At
			default:
			}
		}
		for _, number := range commits {
			require.NoError(t, step(end, arq.Event{Kind: arq.Committed, Number: number}))
		}
		if serial := alarms[end]; !at.IsZero() && serial == wakes {
			line.After(max(at.Sub(line.Now), 0), func() {
				if alarms[end] == serial {
					require.NoError(t, step(end, arq.Event{Kind: arq.Wake}))
				}
			})
		}
		return err
	}
	for i, m := range f.messages {
		line.After(time.Duration(i)*every, func() {
			require.NoError(t, step(0, arq.Event{Kind: arq.Send, Message: m}))
			if every > 0 || i == len(f.messages)-1 {
				require.NoError(t, step(0, arq.Event{Kind: arq.Wake}))
			}
		})
	}
	require.True(t, line.Run(start.Add(time.Hour), func() bool { return done == uint64(len(f.messages)) }), "%s %s: %d",
		profile, f.name, done)
	assert.Equal(t, f.messages, got)
	c.took, c.waited = line.Now.Sub(start), c.waited/time.Duration(len(got))
	return c
}

// framesOf are the frames of messages on a stream of a session that knows their shape.
func framesOf(t testing.TB, messages [][]byte) (list [][]byte) {
	s, err := learn.FromMessage(messages[0])
	require.NoError(t, err)
	p := program.Compile(s)
	h := frame.Hello{Word: [8]byte{1}, Stages: wire.Columns | wire.Memory | wire.Zstd,
		Limits: frame.Limits{MaxFragment: 16384, MaxMessage: 1 << 30, MaxShapes: 1024, MaxShapeBytes: 4 << 20,
			MaxExchanges: 1000}, Token: make([]byte, frame.TokenLen)}
	cfg := wire.EncoderConfig{Origin: frame.OriginOf(h), Word: h.Word, Peer: knows{}, Limits: h.Limits}
	e := wire.NewEncoder(cfg, 0,
		time.Time{})
	if announced := e.Announce(0, &wire.Part{Program: p}, false, time.Time{}); announced != nil {
		for !e.Piece(announced, time.Time{}) {
			continue
		}
	}
	var splitter program.Splitter
	for i, m := range messages {
		var pieces [][]byte
		var texts []bool
		splitter.Reset(p, e.MaxSegment(), false, func(text bool, content []byte) error {
			pieces, texts = append(pieces, bytes.Clone(content)), append(texts, text)
			return nil
		})
		require.NoError(t, splitter.Split(m))
		out := wire.Outgoing{Key: frame.Key{Exchange: uint64(i + 1)}}
		for k := range pieces {
			last := k == len(pieces)-1
			part := wire.Part{There: true, Program: p, Content: pieces[k], Text: texts[k], Last: last}
			require.NoError(t, e.Data(&out, &wire.Part{}, &part, last, time.Time{}))
		}
		list = append(list, bytes.Clone(e.Bytes()))
		e.Reset()
	}
	return list
}

// knows is a peer that has all shapes.
type knows struct{}

func (knows) Has(shape.Fingerprint) (has, sure bool) { return true, true }
func (knows) Learned(*program.Program)               {}

// forms are the ways in which a hundred readings go.
func forms(t testing.TB) []form {
	var messages [][]byte
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 100 {
		messages = append(messages, reading(n, r))
	}
	return []form{
		{"frames", 1200, false, framesOf(t, messages)},
		{"frames, text", 1200, false, messages},
		{"blocks", len(messages[0]) + 100, true, messages}, // so that no two share a datagram
	}
}

var linksOfForms = []string{"gprs", "gprs,loss=5%", "edge,loss=2%,jitter=100ms", "geo,loss=5%,burst=4"}

// intervals are those between messages: all at once, or each on its own.
var intervals = []time.Duration{0, 10 * time.Second}

// Over the same engine of recovery, sequences in frames take fewer bytes and less time than in SOAP
// blocks over datagrams, also where frames carry the same text.
func TestSequencesInFramesAreShorter(t *testing.T) {
	for _, profile := range linksOfForms[:2] {
		for _, every := range intervals {
			var all []carried
			for _, f := range forms(t) {
				all = append(all, carry(t, profile, every, f))
			}
			assert.Less(t, 10*all[0].octets, all[2].octets, "%s: %+v", profile, all)
			assert.Less(t, 3*all[1].octets, 2*all[2].octets, "%s: %+v", profile, all)
			assert.Less(t, all[0].waited, all[1].waited, "%s: %+v", profile, all)
			assert.Less(t, all[1].waited, all[2].waited, "%s: %+v", profile, all)
		}
	}
}

// BenchmarkSequencesOverDatagrams is the table of docs/reliable-messaging.md: virtual time, the
// same each run.
func BenchmarkSequencesOverDatagrams(b *testing.B) {
	for _, profile := range linksOfForms {
		for _, every := range intervals {
			for _, f := range forms(b) {
				b.Run(fmt.Sprintf("%s/%v/%s", profile, every, f.name), func(b *testing.B) {
					var c carried
					for b.Loop() {
						c = carry(b, profile, every, f)
					}
					b.ReportMetric(float64(c.octets)/float64(len(f.messages)), "B/message")
					b.ReportMetric(float64(c.datagrams), "datagrams")
					b.ReportMetric(c.took.Seconds(), "s/all")
					b.ReportMetric(c.waited.Seconds(), "s/message")
				})
			}
		}
	}
}
