package stream

// streamHelp is the long help text of hhfr stream.
const streamHelp = `stream agrees with the service at URL on a session, sends the messages over its stream
and prints the replies in sending order. A service that does not know hhfr gets them as plain SOAP
in HTTP.

--mode says how the session is opened:

  first-call  the first message goes alone, as plain SOAP that asks for a
              stream; if the service agrees, its connection becomes the stream
              after that, or in TLS from its beginning; the other messages
              follow when the first one has its reply
  met         by the session with the service that --store remembers: the
              messages leave with the first packet
  declared    by the WSDL of --schema, whose binding has an annotation that says
              where there are streams: the first message leaves with the first
              packet
  explicit    by an offer before the first message
  auto        met, if a session is remembered; otherwise declared, if the WSDL
              declares a stream; otherwise explicit for what only an offer can
              express: HHFR Schemas, unchanging headers, an assurance or order,
              --representation xml, --transport udp; otherwise first-call

With --require-hhfr or --listen, first-call asks by a request without a message, not by the first
message. hhfr negotiate URL shows the outcome of each mode.

URL is also the address of a queue, jms:queue:NAME?targetService=SERVICE, at the broker of --broker:
the messages go to it in plain SOAP, as SOAP over JMS has them, and the replies come by a queue of
the connection, or by that of the parameter replyToName. Further parameters are timeToLive (in ms),
priority and deliveryMode.

FILE is sent as it is, whatever it contains; - reads a sequence of XML documents from stdin. --wrap
puts a body into an envelope first.
--one-way expects no replies: a message is done when it is written, and listed at the end if it was
lost. --listen keeps running and prints server-initiated messages until Ctrl-C or SIGTERM, until
--timeout is over, or until the stream ends and no other one can be opened.
--unchanging-header names a header block that messages have in common. A service that agrees gets it
once: messages that contain it byte for byte travel without it, and are whole again after the
stream.
--schema names a description: a WSDL or XML Schema, a file or URL, or an HHFR Schema. It is named by
its fingerprint. A peer that has the same one gets shapes as what the description does not say;
any other peer gets them whole. Messages that are not as described arrive all the same, and are
counted.
If the stream breaks, a new one is negotiated for up to the time of --reconnect; after that the
remaining messages go as plain SOAP. Messages that were written and not answered are listed, and
never sent again.
--node names further nodes of the service. When one dies, or its stream breaks, the next one goes
on: with an assurance exactly where it was, as the nodes share a context store.
--assurance at-least-once and exactly-once number the messages and hold them in --store until they
are committed, even if streams break and processes die meanwhile. Messages and replies may have up
to 1 GiB, as far as the stores have room; after a broken stream only what is missing is sent.
--ordered makes the service handle messages in their order, under any assurance; at-most-once stores
nothing, and lists what a broken stream lost.
Messages under an assurance or in order wait for a server that is away, or whose store is in
trouble, for the time of --reconnect; without a stream until then nothing is sent, exit code 3.
With a service that refuses hhfr they go in a sequence of WS-ReliableMessaging if the policy in its
description, at URL?wsdl, says that it takes those; else nothing is sent, exit code 3.
Exactly-once needs a store that persists, here and at the server. Only one process at a time may
send under an assurance from the same store to the same service.

--soap-rm sends the messages in a sequence of WS-ReliableMessaging over plain SOAP, to a service that
knows that and not hhfr: 1.0, or 1.1, which is 1.2 on the wire as well. --addressing says which
WS-Addressing goes with it; without it a service that refuses the usual one is asked once more with
the other. Messages are in --store from the moment at which they are accepted until they are
acknowledged; a run sends what an earlier one left first, and without a FILE nothing else. -v shows
the sequence.
Replies and acknowledgements come on the connections of the messages, or, with --callback, to an
address here: the service opens connections for them. With --poll the service keeps what it does not
answer at once until it is asked for it. Which of the three it is stays the same as long as --store
has the sequence, and so does the address. A message is at most 64 MiB less 64 KiB.

After an interruption, repeat the command with --resume. The store has the number of messages that
the interrupted run had accepted, and a digest of them: if this run begins with the same messages,
these are left out, and the rest is sent. Otherwise:

  all      messages are sent if no earlier run is known, or the last one was
           completed and began with another message
  none     is sent if the last run was completed with exactly these messages
  refused  in all other cases: nothing is sent, exit code 2

Which case it was is printed on stderr. Without --resume all messages are sent, after those that the
store still has of an interrupted run; that run can be resumed later, too. The store remembers 16
interrupted runs to a service.

Exit code 1: a reply is a fault or an HTTP error; 3: there is no connection, or the port speaks http
where the URL says https, or the reverse; 5: the fate of messages is unknown, or they are pending in
the store and not known to be committed; 130: interrupted, after which all that is known is printed.`

// streamExamples are command lines of hhfr stream.
const streamExamples = `  hhfr stream http://127.0.0.1:8080/echo message.xml
  hhfr stream http://127.0.0.1:8080/echo a.xml b.xml --repeat 100 -o json
  cat requests.xml | hhfr stream http://127.0.0.1:8080/echo - --save-dir out
  hhfr stream http://127.0.0.1:8080/echo body.xml --wrap 1.2 --action urn:example:op -H 'X-Trace: 1'
  hhfr stream http://127.0.0.1:8080/echo message.xml --one-way
  hhfr stream http://127.0.0.1:8080/echo message.xml --link edge -v
  hhfr stream http://127.0.0.1:8080/echo message.xml --unchanging-header tenant.xml
  hhfr stream http://127.0.0.1:8080/ledger add.xml more.xml --ordered
  hhfr stream http://127.0.0.1:8080/echo message.xml --transport udp
  hhfr stream http://127.0.0.1:8080/ledger add.xml more.xml --assurance at-least-once --ordered
  hhfr stream http://127.0.0.1:8080/ledger add.xml more.xml --assurance exactly-once --store bolt:client.db --resume
  hhfr stream http://127.0.0.1:8080/ledger add.xml --soap-rm 1.1 --callback 127.0.0.1:8081 --store bolt:client.db
  hhfr stream http://127.0.0.1:8080/ledger add.xml --node http://127.0.0.1:8081/ledger --assurance at-least-once
  hhfr stream http://127.0.0.1:8080/ticker --listen --timeout 2s
  hhfr stream 'jms:queue:orders?targetService=sum' sum.xml --broker amqp://broker.example/`
