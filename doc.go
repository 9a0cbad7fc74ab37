// Package hhfr carries SOAP over thin links: two peers agree once on what does not change in their
// messages. From then on only what changes travels, as binary, over a stream. With a peer that does
// not know hhfr it uses plain SOAP.
//
//	reply, err := hhfr.Call(ctx, "http://127.0.0.1:8080/echo", "<Envelope>…</Envelope>")
//
// A [Client] calls one service. An [Operation] has structs instead of envelopes, on both sides
// ([Invoke]). A [Transport] goes under an unchanged client of net/http, a [Handler] or [Server]
// around unchanged services. [Decode] reads captures. Below are packages for stores of your own
// (pkg/ctxstore), schemas (pkg/schema), and for those who build another system on offers
// (pkg/negotiate) and streams (pkg/streamer).
package hhfr
