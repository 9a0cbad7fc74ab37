package main

import (
	"encoding/json"
	"io"
	"iter"
	"maps"
	"time"

	"github.com/hhfr/hhfr/pkg/capture"
)

// reportVersion is the version of the JSON that decode and reconstruct print (docs/cli.md).
const reportVersion = 1

type report struct {
	Version  int             `json:"version"`
	Messages []messageReport `json:"messages"`
	Streams  []streamReport  `json:"streams"`
	Capture  captureReport   `json:"capture"`
	Others   map[string]int  `json:"others"`
	Partial  bool            `json:"partial"`
}

type messageReport struct {
	Number     int    `json:"number"`
	Session    string `json:"session"`
	Lane       uint64 `json:"lane"`
	Exchange   uint64 `json:"exchange"`
	Kind       string `json:"kind"`
	Source     string `json:"source,omitempty"`
	Target     string `json:"target,omitempty"`
	First      string `json:"first,omitempty"`
	Last       string `json:"last,omitempty"`
	Packet     int    `json:"packet,omitempty"`
	SOAP       string `json:"soap,omitempty"`
	Operation  string `json:"operation,omitempty"`
	Namespace  string `json:"operation_namespace,omitempty"`
	Wire       int64  `json:"wire_octets"`
	BodyOctets int    `json:"body_octets"`
	HeadOctets int    `json:"head_octets"`
	State      string `json:"state"`
	Why        string `json:"why,omitempty"`
	Lacks      string `json:"lacks_shape,omitempty"`
	Head       []byte `json:"head_base64,omitempty"`
	Body       []byte `json:"body_base64,omitempty"`
}

type streamReport struct {
	Session  string             `json:"session"`
	Source   string             `json:"source,omitempty"`
	Target   string             `json:"target,omitempty"`
	Facts    json.RawMessage    `json:"facts,omitempty"`
	Octets   [2]streamOctetsOut `json:"octets"`
	Problems []string           `json:"problems"`
	Cut      bool               `json:"cut"`
}

type streamOctetsOut struct {
	Data  int64 `json:"data"`
	Shape int64 `json:"shape"`
	Sync  int64 `json:"sync"`
	Other int64 `json:"other"`
}

type captureReport struct {
	Packets       int            `json:"packets"`
	TCPFlows      int            `json:"tcp_connections"`
	UDPDatagrams  int            `json:"udp_datagrams"`
	Gaps          int            `json:"gaps"`
	MissingOctets int64          `json:"missing_octets"`
	Undecoded     map[string]int `json:"undecoded_packets"`
	Truncated     bool           `json:"truncated"`
	TruncatedAt   int64          `json:"truncated_at,omitempty"`
}

func newMessageReport(m *capture.Decoded) messageReport {
	r := messageReport{Number: m.Number, Session: m.SessionString(), Lane: m.Lane, Exchange: m.Exchange, Kind: "request", First: stamp(m.First), Last: stamp(m.Last),
		Packet: m.Packet, Operation: m.Operation.Local, Namespace: m.Operation.Space, Wire: m.Wire, BodyOctets: len(m.Body), HeadOctets: len(m.Head),
		State: m.State.String(), Why: m.Why, Lacks: m.Lacks, Head: m.Head, Body: m.Body}
	switch {
	case m.Reply:
		r.Kind = "reply"
	case m.OneWay:
		r.Kind = "one-way"
	}
	if m.Version != 0 {
		r.SOAP = m.Version.String()
	}
	if m.Src.IsValid() {
		r.Source, r.Target = m.Src.String(), m.Dst.String()
	}
	return r
}

func newReport(r *capture.Result) report {
	out := report{Version: reportVersion, Messages: []messageReport{}, Streams: []streamReport{}, Others: r.Others, Partial: r.Partial(), Capture: captureReport{
		Packets: r.Stats.Packets, TCPFlows: r.Stats.TCPFlows, UDPDatagrams: r.Stats.UDPDatagrams, Gaps: r.Stats.Gaps, MissingOctets: r.Stats.MissingOctets,
		Undecoded: r.Stats.Undecoded, Truncated: r.Stats.Truncated, TruncatedAt: r.Stats.TruncatedAt}}
	for _, m := range r.Messages {
		out.Messages = append(out.Messages, newMessageReport(m))
	}
	for _, s := range r.Streams {
		d := capture.Decoded{HHFR: true, Session: s.Session}
		one := streamReport{Session: d.SessionString(), Problems: append([]string{}, s.Problems...), Cut: s.Cut}
		if json.Valid([]byte(s.Facts)) {
			one.Facts = json.RawMessage(s.Facts)
		}
		if s.Src.IsValid() {
			one.Source, one.Target = s.Src.String(), s.Dst.String()
		}
		for i, o := range s.Octets {
			one.Octets[i] = streamOctetsOut(o)
		}
		out.Streams = append(out.Streams, one)
	}
	return out
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func writeJSON(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }

func mapKeys[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }
