// Package middleboxes has only tests (make interop): they put proxies, portals, firewalls and NATs
// between a client and a server that share no store, and hold docs/middleboxes.md to what came of
// each, a stream or plain SOAP.
package middleboxes
