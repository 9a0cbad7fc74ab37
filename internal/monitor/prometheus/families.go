package prometheus

import (
	"maps"
	"slices"

	"github.com/hhfr/hhfr/internal/meter"
)

// families are all metrics that are about upstreams or operations. Names of the two differ, so that
// a sum over a metric counts nothing twice.
var families = []family{
	{name: "hhfr_calls_total", kind: "counter", help: "Calls over streams that have ended.",
		upstream: func(u *meter.UpstreamCounts, put sink) { put(float64(u.Calls)) }},
	{name: "hhfr_calls_failed_total", kind: "counter", help: "Of them, those without a whole reply.",
		upstream: func(u *meter.UpstreamCounts, put sink) { put(float64(u.Failed)) }},
	{name: "hhfr_calls_in_progress", kind: "gauge", help: "Calls over streams under way.",
		upstream: func(u *meter.UpstreamCounts, put sink) { put(float64(u.InProgress)) }},
	{name: "hhfr_call_seconds_total", kind: "counter", help: "Time from request to end of reply, summed over calls.",
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
	{name: "hhfr_plain_total", kind: "counter", help: "Connections, or calls of serve, without a stream, by reason.",
		upstream: func(u *meter.UpstreamCounts, put sink) {
			for _, p := range u.Plain {
				put(float64(p.Count), "reason", p.Reason)
			}
		}},
	{name: "hhfr_plain_bytes_total", kind: "counter", help: "Their bytes.",
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

	{name: "hhfr_operation_calls_total", kind: "counter", help: "Calls over streams that have ended.",
		operation: func(o *meter.CallCounts, put sink) { put(float64(o.Calls)) }},
	{name: "hhfr_operation_calls_failed_total", kind: "counter", help: "Of them, those without a whole reply.",
		operation: func(o *meter.CallCounts, put sink) { put(float64(o.Failed)) }},
	{name: "hhfr_operation_call_seconds_total", kind: "counter",
		help:      "Time from request to end of reply, summed over calls.",
		operation: func(o *meter.CallCounts, put sink) { put(o.Seconds) }},
	{name: "hhfr_operation_added_seconds_total", kind: "counter",
		help:      "Of it, time that messages spent in this process.",
		operation: func(o *meter.CallCounts, put sink) { put(o.AddedSeconds) }},
	{name: "hhfr_operation_http_bytes_total", kind: "counter", help: "Bytes of calls over streams, on the HTTP side.",
		operation: putHTTP},
	{name: "hhfr_operation_link_bytes_total", kind: "counter", help: "Bytes of their data frames, on the link side.",
		operation: putLink},
	{name: "hhfr_operation_ratio", kind: "gauge", help: "Bytes on the link by bytes of HTTP, since the start.",
		operation: putRatio},
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
