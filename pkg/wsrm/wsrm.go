// Package wsrm has reliable sequences with the meaning of WS-ReliableMessaging 1.1 and 1.2 (OASIS
// 200702), in a form made for thin links: the delivery guarantees, and the engine that keeps them
// over connections and crashes. The SOAP form of the standard is in pkg/wsrm/header.
//
// An [Engine] is one end: the source of one sequence and the destination of the peer's. Messages go
// over carriers that neither lose nor reorder, one after another: connections. What is lost is lost
// with its carrier, so that there is no retransmission timer and no congestion window; whatever is
// not done is sent again on the next carrier. The engine has no socket and no clock: everything
// that happens to it is an [Event] for [Engine.Step], everything it wants an [Action] that Step
// returns.
//
// # Guarantees
//
// At-most-once: nothing is sent again, and no number is delivered twice; what the end of a carrier
// leaves under way is reported as [Lost]. At-least-once: a message is sent until it is done or
// reported. Exactly-once: both. They hold over crashes of either end, since the state lies in a
// store: number, reply and effect of a message are stored as one value, before anything of it is
// seen outside, so that after a crash all of them happened or none. [Config.Ordered]: messages are
// delivered in the order of their numbers.
//
// # Numbers and acknowledgements
//
// Messages are numbered from 1, without gaps, and a message sent again keeps its number (WS-RM 1.1,
// section 3.7). Beyond the greatest number of a sequence, 2^63-1, the next sequence begins; here
// the numbers count on. An acknowledgement says up to where all is done, that is delivered and
// committed, and which messages above arrived. What is done stays done. What merely arrived may be
// lost when the destination crashes, and is sent again. A destination filters duplicates by one bit
// of state for each number in a window above what is done: memory is bounded by [Config.Window] and
// [Config.Hold].
package wsrm
