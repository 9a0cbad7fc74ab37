// Package middleboxes has only tests (make interop): they put proxies, portals, firewalls and NATs
// between a client and a server that share no store, and compare the outcome of each, a stream or
// plain SOAP, with docs/middleboxes.md.
package middleboxes
