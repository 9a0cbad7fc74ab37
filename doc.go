// Package hhfr carries SOAP over thin links: two ends agree once on what does not change in their
// messages; from then on only what changes travels, as binary, over a stream. A peer that does not
// know hhfr is spoken to in plain SOAP.
//
//	reply, err := hhfr.Call(ctx, "http://127.0.0.1:8080/echo", "<Envelope>…</Envelope>")
//
// A [Client] calls one service. A [Transport] goes under an unchanged client of net/http, a
// [Handler] or [Server] around unchanged services. [Decode] reads captures. What is below, heads as
// they are on the wire, lanes, sequences and frames, is for proxies and tools, in the packages of
// pkg.
package hhfr
