package prometheus

import (
	"maps"
	"slices"

	"github.com/hhfr/hhfr/internal/meter"
)

// families are all metrics that are about upstreams or operations. Names of the two differ, so that
// a sum over a metric counts nothing twice.
var families = []family{
	{name: "hhfr_calls_total", kind: "counter", help: "Calls that have ended, over streams or plainly.",
		upstream: func(u *meter.UpstreamCounts, put sink) {
			putWays(u, put, u.Calls, func(p *meter.PlainCounts) int64 { return p.Calls })
		}},
	{name: "hhfr_calls_failed_total", kind: "counter", help: "Of them, those without a whole reply.",
		upstream: func(u *meter.UpstreamCounts, put sink) {
			putWays(u, put, u.Failed, func(p *meter.PlainCounts) int64 { return p.Failed })
		}},
	{name: "hhfr_faults_total", kind: "counter", help: "Of them, those with a SOAP fault for a reply.",
		upstream: func(u *meter.UpstreamCounts, put sink) {
			putWays(u, put, u.Faults, func(p *meter.PlainCounts) int64 { return p.Faults })
		}},
	{name: "hhfr_fall_backs_total", kind: "counter",
		help: "Calls that went plainly although a stream was wanted, by reason.",
		upstream: func(u *meter.UpstreamCounts, put sink) {
			for _, p := range u.Plain {
				if p.FallBack {
					put(float64(p.Calls), "reason", p.Reason)
				}
			}
		}},
	{name: "hhfr_calls_in_progress", kind: "gauge", help: "Calls under way.",
		upstream: func(u *meter.UpstreamCounts, put sink) { put(float64(u.InProgress)) }},
	{name: "hhfr_call_seconds_total", kind: "counter",
		help:     "Time from request to end of reply, summed over calls over streams.",
		upstream: func(u *meter.UpstreamCounts, put sink) { put(u.Seconds) }},
	{name: "hhfr_added_seconds_total", kind: "counter", help: "Of it, time that messages spent in this process.",
		upstream: func(u *meter.UpstreamCounts, put sink) { put(u.AddedSeconds) }},
	{name: "hhfr_http_bytes_total", kind: "counter", help: "Bytes of calls over streams, on the HTTP side.",
		upstream: func(u *meter.UpstreamCounts, put sink) { putHTTP(&u.CallCounts, put) }},
	{name: "hhfr_link_bytes_total", kind: "counter", help: "Bytes of streams, on the link side.",
		upstream: func(u *meter.UpstreamCounts, put sink) { putLink(&u.CallCounts, put) }},
	{name: "hhfr_ratio", kind: "gauge", help: "Bytes on the link by bytes of HTTP, since the start.",
		upstream: func(u *meter.UpstreamCounts, put sink) { putRatio(&u.CallCounts, put) }},
	{name: "hhfr_shapes_total", kind: "counter", help: "Shapes sent or received on streams.",
		upstream: func(u *meter.UpstreamCounts, put sink) {
			put(float64(u.ShapesSent), "direction", "sent")
			put(float64(u.ShapesReceived), "direction", "received")
		}},
	{name: "hhfr_streams", kind: "gauge", help: "Streams that are open.",
		upstream: func(u *meter.UpstreamCounts, put sink) {
			if !u.Gone || u.Streams > 0 {
				put(float64(u.Streams))
			}
		}},
	{name: "hhfr_streams_opened_total", kind: "counter", help: "Streams that were opened.",
		upstream: func(u *meter.UpstreamCounts, put sink) { put(float64(u.Opened)) }},
	{name: "hhfr_reconnects_total", kind: "counter", help: "Streams that were opened after the first one.",
		upstream: func(u *meter.UpstreamCounts, put sink) {
			if u.Role == "near" {
				put(float64(max(0, u.Opened-1)))
			}
		}},
	{name: "hhfr_stream_failures_total", kind: "counter", help: "Attempts to open a stream that failed, by reason.",
		upstream: func(u *meter.UpstreamCounts, put sink) {
			for _, reason := range slices.Sorted(maps.Keys(u.Failures)) {
				put(float64(u.Failures[reason]), "reason", reason)
			}
		}},
	{name: "hhfr_stream_blocked", kind: "gauge",
		help: "1: the last attempt agreed on a stream and could not open it.",
		upstream: func(u *meter.UpstreamCounts, put sink) {
			if u.Role == "near" && !u.Gone && (u.Opened > 0 || len(u.Failures) > 0) {
				blocked := 0.0
				if u.Reason == "blocked" {
					blocked = 1
				}
				put(blocked)
			}
		}},
	{name: "hhfr_plain_calls_total", kind: "counter", help: "Calls that went without a stream, by reason.",
		upstream: func(u *meter.UpstreamCounts, put sink) {
			for _, p := range u.Plain {
				put(float64(p.Calls), "reason", p.Reason)
			}
		}},
	{name: "hhfr_plain_connections_total", kind: "counter",
		help: "Connections that were forwarded without a stream, by reason.",
		upstream: func(u *meter.UpstreamCounts, put sink) {
			for _, p := range u.Plain {
				if p.Connections > 0 {
					put(float64(p.Connections), "reason", p.Reason)
				}
			}
		}},
	{name: "hhfr_plain_bytes_total", kind: "counter", help: "Bytes without a stream.",
		upstream: func(u *meter.UpstreamCounts, put sink) {
			for _, p := range u.Plain {
				put(float64(p.RequestBytes), "reason", p.Reason, "direction", "request")
				put(float64(p.ReplyBytes), "reason", p.Reason, "direction", "reply")
			}
		}},
	{name: "hhfr_credit_waits_total", kind: "counter", help: "Waits of messages for credit of the peer.",
		upstream: func(u *meter.UpstreamCounts, put sink) { put(float64(u.CreditWaits)) }},
	{name: "hhfr_round_trip_seconds", kind: "gauge", help: "Smoothed round trip of the slowest open stream.",
		upstream: func(u *meter.UpstreamCounts, put sink) {
			if u.RoundTrip > 0 {
				put(u.RoundTrip)
			}
		}},
	{name: "hhfr_resent_packets_total", kind: "counter", help: "Packets of streams that were sent again.",
		upstream: func(u *meter.UpstreamCounts, put sink) { put(float64(u.Resent)) }},

	{name: "hhfr_operation_calls_total", kind: "counter", help: "Calls that have ended, over streams or plainly.",
		operation: func(o *meter.OperationCounts, put sink) { putBoth(o, put, o.Calls, o.Plain.Calls) }},
	{name: "hhfr_operation_calls_failed_total", kind: "counter", help: "Of them, those without a whole reply.",
		operation: func(o *meter.OperationCounts, put sink) { putBoth(o, put, o.Failed, o.Plain.Failed) }},
	{name: "hhfr_operation_faults_total", kind: "counter", help: "Of them, those with a SOAP fault for a reply.",
		operation: func(o *meter.OperationCounts, put sink) { putBoth(o, put, o.Faults, o.Plain.Faults) }},
	{name: "hhfr_operation_call_seconds", kind: "histogram", help: "Time from request to end of reply.",
		times: func(o *meter.OperationCounts, put histogramSink) {
			if o.Calls > 0 {
				put(o.Buckets, o.Seconds, "way", "stream")
			}
			if o.Plain.Calls > 0 {
				put(o.Plain.Buckets, o.Plain.Seconds, "way", "plain")
			}
		}},
	{name: "hhfr_operation_added_seconds_total", kind: "counter",
		help:      "Of it, time that messages over streams spent in this process.",
		operation: func(o *meter.OperationCounts, put sink) { put(o.AddedSeconds) }},
	{name: "hhfr_operation_http_bytes_total", kind: "counter", help: "Bytes of calls over streams, on the HTTP side.",
		operation: func(o *meter.OperationCounts, put sink) { putHTTP(&o.CallCounts, put) }},
	{name: "hhfr_operation_link_bytes_total", kind: "counter", help: "Bytes of their data frames, on the link side.",
		operation: func(o *meter.OperationCounts, put sink) { putLink(&o.CallCounts, put) }},
	{name: "hhfr_operation_ratio", kind: "gauge", help: "Bytes on the link by bytes of HTTP, since the start.",
		operation: func(o *meter.OperationCounts, put sink) { putRatio(&o.CallCounts, put) }},
}

// putWays puts a number of calls over streams, and that of plain ones, each if there are such
// calls.
func putWays(u *meter.UpstreamCounts, put sink, stream int64, plain func(*meter.PlainCounts) int64) {
	calls, sum := int64(0), int64(0)
	for i := range u.Plain {
		calls += u.Plain[i].Calls
		sum += plain(&u.Plain[i])
	}
	if u.Calls > 0 || calls == 0 {
		put(float64(stream), "way", "stream")
	}
	if calls > 0 {
		put(float64(sum), "way", "plain")
	}
}

// putBoth is putWays for an operation.
func putBoth(o *meter.OperationCounts, put sink, stream, plain int64) {
	if o.Calls > 0 || o.Plain.Calls == 0 {
		put(float64(stream), "way", "stream")
	}
	if o.Plain.Calls > 0 {
		put(float64(plain), "way", "plain")
	}
}

func putHTTP(c *meter.CallCounts, put sink) {
	put(float64(c.RequestBytes), "direction", "request")
	put(float64(c.ReplyBytes), "direction", "reply")
}

func putLink(c *meter.CallCounts, put sink) {
	put(float64(c.SentBytes), "direction", "sent")
	put(float64(c.ReceivedBytes), "direction", "received")
}

// putRatio leaves out what does not exist.
func putRatio(c *meter.CallCounts, put sink) {
	if c.RequestBytes+c.ReplyBytes > 0 {
		put(c.Ratio)
	}
}
