package serve

import (
	"github.com/hhfr/hhfr/cmd/hhfr/internal/metrics"
	"github.com/hhfr/hhfr/internal/peer"
)

// serveHelp is the long help text of hhfr serve.
var serveHelp = `serve offers test services over plain SOAP in HTTP and over hhfr streams, and prints
the URL of each, and a curl line that calls it.
All of it is at one address, --listen: plain SOAP, negotiation, streams over TCP, and streams over
UDP at the same port number. With --cert and --key the address takes TLS only, https as well as
streams; streams over UDP, which are cleartext, are then accepted only at the address of
--udp. --tcp and --udp name other addresses for streams, or none.
Ctrl-C (exit code 130) or SIGTERM (0) ends it after what is in progress. SIGHUP does not: it reads
--cert, --key, --client-ca and the files of tokens again, for connections and requests from then on.

--client-ca asks clients for a certificate. --negotiate says who may have a session: others get
plain SOAP, as from a server that does not know hhfr. The keys of TLS are written to the file that
the environment variable SSLKEYLOGFILE names, for hhfr decode --keylog and Wireshark, and with
--record-keys into the recording.

A summary is reported at the end and, except on Windows, on SIGUSR1: calls, SOAP faults, calls that
failed; of those over streams the bytes on the HTTP side and on the link, and the ratio of the two;
and those in plain SOAP.
` + metrics.SyncHelp + metrics.Help + `
Services (all but the first have a description at URL?wsdl, which declares where there are streams):

  /echo     returns the body it got
  /concat   joins strings
  /sum      adds numbers
  /records  returns records of a string, an int and a boolean
  /geoip    reports whether an IPv4 address is in a list of ranges
  /blob     returns the requested number of random bytes
  /ticker   sends each session a server-initiated message every second; in plain
            SOAP it answers a request with the next one
  /ledger   keeps entries: add appends one, read returns them; under an
            assurance an entry is appended in the transaction of its message

They read SOAP 1.1 and 1.2 in UTF-8, UTF-16 and ISO-8859-1, also in gzip, and answer in UTF-8.
Requests in Fast Infoset (application/fastinfoset, application/soap+fastinfoset), and those whose
Accept names it, are answered in it.

Clients may ask for messages in order, at-least-once, and exactly-once if --store persists: it holds
the server's side of their sequences. A server that was killed and is restarted with the same store
continues them.

With --soap-rm the services also take messages in sequences of WS-ReliableMessaging, over plain SOAP:
1.0 (February 2005), 1.1 and 1.2, which are the same on the wire, or all; with WS-Addressing of 2004
and of 2005. Each message is handled exactly once and in order; the ledger appends entries in the
transaction of the message. The sequences are in --store, too. Replies and acknowledgements go on
the connection of the request, or to the address that the client names for them, or to who asks for
them (WS-MakeConnection, with 1.1). An address is that of the host that the request comes from, or
of one of --allow-host; to others nothing is sent.

With --context the store is served to others at /context, as by hhfr context serve: shapes, sessions,
all that it has.

With --wsdl it answers every operation of that WSDL instead, at the paths of its ports: with samples
that are as the WSDL says, or with what --replies has: files in a folder, or a capture or recording,
whose replies each operation gives in turn, or by the values at the paths of --match. URL?wsdl is the WSDL with the
addresses of this server. Requests that are not as described are answered, and reported on stderr;
those of no operation get a fault. No connection is opened to the service that the WSDL is of.

The ranges of /geoip are, unless --geoip names others, ` + peer.DutchRangesOrigin + `.

With --queue it also answers the requests of a queue, as SOAP over JMS has them: each by the service
that the request names as its target service, otherwise by the one that the queue is named after. A
request is acknowledged when its reply is with the broker; those that cannot be handled go to its
dead letters. A broker that is gone is looked for again. With --exactly-once a request that comes again
has the reply from before, also from another server with the same --store, and is not handled again.

--workers and --service-time make the capacity of the services small, to measure what a server does
beyond it (hhfr bench load): requests wait in a short queue, and others are refused at once, by a
fault with status 503 and Retry-After, over a stream as in plain SOAP.

--misbehave makes a bad server, to test clients with:

` + misbehaviors()

// serveExamples are command lines of hhfr serve.
const serveExamples = `  hhfr serve
  hhfr serve --listen 127.0.0.1:0 -o json
  hhfr serve --wsdl service.wsdl --latency 200ms --fail 5%
  hhfr serve --store ./store --record session.pcapng
  hhfr serve --store bolt:store.db --soap-rm all
  hhfr serve --store bolt:store.db --misbehave close-after=10
  hhfr serve --listen 0.0.0.0:8443 --cert server.pem --key server.key --client-ca ca.pem --negotiate certificate
  hhfr serve --store bolt:server.db --tcp 127.0.0.1:9090 --udp none
  hhfr serve --queue amqp://broker.example/orders`
