package proxy

import "github.com/hhfr/hhfr/cmd/hhfr/internal/metrics"

// proxyHelp is the long help text of hhfr proxy.
const proxyHelp = `proxy takes HTTP connections and forwards them to --upstream. Two of them make a pair,
one at each end of the link: the near one, which clients connect to, has the far one as its
--upstream; the far one has the server. They agree on a session, and from then on only what changes
in messages travels between them. Heads and bodies arrive byte for byte as they left, and so does
what is not SOAP or not HTTP.

--mode says how the near one opens a session, always concurrently with the calls:

  first-call  by an OPTIONS request for the path of --upstream, whose connection
              becomes the stream
  met         by the session that --store remembers: nothing is asked
  declared    by the WSDL of --schema, if that declares a stream at --upstream
  explicit    by an offer, a POST to the path of --upstream, whose answer says
              where the stream is opened
  auto        met, if a session is remembered and the far one still knows it;
              otherwise declared, if the WSDL declares a stream; otherwise
              first-call

The far one answers all of them. Any other client that asks it for a stream, by OPTIONS or with a
POST, gets one: what it sends is forwarded as HTTP.

--listen takes everything: clients, offers, and streams of near proxies. What begins like a stream
but is not one that this proxy agreed to is taken for the client's, and forwarded. With --cert and
--key it takes TLS only. With --upstream https://FAR:PORT everything between the near one and the
far one is in TLS, including the stream; --allow-cleartext lets it agree to a stream without
encryption, if the far one has no other. --tcp names another address for streams, or none for a
proxy that is only a near one.

--client-ca asks clients for a certificate, --upstream-cert presents one to the
upstream. --negotiate says who may have a session; others are forwarded. The keys of TLS are written
to the file that the environment variable SSLKEYLOGFILE names, for hhfr decode --keylog and
Wireshark, and with --record-keys into the recording.

With --context the store is served to others at /context, as by hhfr context serve. This is for
connections to --listen; requests for /context that come over a stream are forwarded.

--soap-rm is for the far one, and for a server that wants WS-ReliableMessaging of clients that do not
know it: SOAP messages go to --upstream in sequences, one for each address and principal
(Authorization, Cookie), as hhfr stream --soap-rm sends them; replies come back without. A message
that has WS-ReliableMessaging of its own, wants its reply at another address, is compressed or has
attachments goes as it is, and is in no sequence of this proxy. What the store (--store) has of a
sequence is sent before its next message. A message is at most 64 MiB less 64 KiB.

--without leaves stages out; the far one then refuses streams of a near one that asks for them.

--schema names the description of the server: a WSDL or XML Schema, a file or URL, or an HHFR Schema.
A pair whose halves have the same one sends shapes as what the description does not say. The near
one names it when it asks for its first session: an HHFR Schema in an offer, the others by their
fingerprint. Messages that are not as described are carried all the same, and counted when the proxy
ends.

Without a partner, connections are forwarded as they are; a server that does not know hhfr sees one
OPTIONS request or offer, then none for the time of --remember (if it does not answer that, or with
status 503, the next ones come in growing intervals up to that time), and with --no-offer none at
all. Offers are made concurrently with the calls: a connection that arrives while there is no stream
is forwarded as it is, to its end. If there is a partner but no stream can be opened, this is
reported on stderr, once, and so is the next stream that is opened. If the upstream speaks http
where its URL says https, or the reverse, this is reported on stderr, and clients get status 502.

One proxy can have many upstreams: sections [proxy route NAME] of the --config file say by listen
(an address of its own), host (NAME or NAME:PORT, several with commas) and path (/a takes /a and
/a/b) which requests go to their upstream. Of the routes that take a request, one with its host
counts first, then one with the longest path; --upstream takes what no route does, and without it
such a request gets status 404. A route may set what the flags for --upstream set, and has their
values otherwise. SIGHUP reads the file again: calls in progress end where they began, the next
request of each connection goes by the new routes, listeners are opened and closed. If the file is
wrong, everything stays as it is, and stderr says why.

Connections from one address that show the same password, token, cookie or certificate are of one
client: the next one goes on with what the one before said, which takes fewer bytes. Not so from
this machine, through other proxies, for web pages, without such a proof, with one that is made anew
for each request (HTTP Digest, NTLM), or when the address has shown a second one. With
--client-per-address all connections from an address are one client's, whatever they show: for
devices that open a connection for each call; a warning names an address that opens many. Not for
addresses of many users, who could then find out, by lengths, what others send. With
--client-per-connection no connection goes on with what another one said.

What has no stream goes plainly. With --require-hhfr it is refused with status 503 instead: for a
near half whose link must carry nothing in clear, or no more than a stream takes. A near half that
never found a far one says so, once, if a flag such as --store shows that it is half of a pair.

The link may be a queue of a broker, for sites that are online now and then. The near half has
--upstream jms:queue:NAME and --broker: it puts requests into the queue, as SOAP over JMS has them,
and waits for each reply as long as the request lives (timeToLive, a minute without), or with
--one-way for none. The far half has --queue: it sends the requests of the queue to --upstream. What
it cannot reach gets nothing, and the requests stay in the queue. Where --store names the same store
for both, messages go as content. Of HTTP only POST, paths, content types and actions pass, and one
of: a reply, a fault, status 202. Only flags for --listen, --upstream and --store go with it.

--check reads flags, variables, the --config file, certificates, tokens and descriptions, prints what
the proxy would be, and ends with exit code 0; with another one what is wrong stands on stderr. It
opens no store and no listener, writes nothing and asks nobody, so it can run beside a proxy.

On a terminal, in the foreground, one line shows what was carried so far. A summary is reported at the end and, except
on Windows, on SIGUSR1: calls, SOAP faults, calls that failed; of those over streams the bytes on the
HTTP side and on the link, and the ratio of the two; and what went plainly, with the reasons.
` + metrics.SyncHelp + metrics.Help + `
After Ctrl-C (exit code 130) or SIGTERM (0), proxy accepts no further connection, answers further
requests with status 503, waits for the calls in progress, at most for the time of --drain, and
ends. SIGHUP reads certificates, keys, authorities and tokens again, with --config and without, for
connections and requests from then on; open ones stay, also the stream. If the pair
loses its stream, a call that was sent and not yet answered ends in status 502, and is never sent
twice.`

// proxyExamples are command lines of hhfr proxy.
const proxyExamples = `  hhfr proxy --listen 127.0.0.1:8082 --upstream http://127.0.0.1:8080/echo
  hhfr proxy --listen 127.0.0.1:8081 --upstream http://127.0.0.1:8082/echo --record link.pcapng
  hhfr proxy --listen 0.0.0.0:8443 --cert server.pem --key server.key ` +
	`--upstream http://127.0.0.1:8080/echo --store ./store --no-offer
  hhfr proxy --listen 127.0.0.1:8081 --upstream https://far.example:8443/echo --cacert ca.pem
  hhfr proxy --listen 127.0.0.1:8081 --upstream jms:queue:link --broker amqp://broker.example/
  hhfr proxy --queue amqp://broker.example/link --upstream http://127.0.0.1:8080/
  hhfr proxy --config pair.conf`
