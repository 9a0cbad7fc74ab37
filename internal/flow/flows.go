package flow

import (
	"net/netip"
	"time"

	"github.com/hhfr/hhfr/internal/tlsrecord"
)

// Receiver takes the bytes of one connection, in order, as they come. An error ends the reading.
type Receiver interface {
	// Octets takes the bytes of one packet in a direction: 0 from Src to Dst; of a connection that
	// is decrypted those of one record. gap is how many bytes are missing before them; -1 if that
	// is not known, for the first ones of a direction whose beginning is not, and in what is
	// decrypted. Nobody writes to b afterwards.
	Octets(dir int, gap int64, b []byte, m Mark) error
	// Closed reports that nothing more comes: the connection ended, or the capture did, or a limit
	// requires it.
	Closed() error
}

// Flow is one TCP connection. Src opened it, if Opened; else Src sent its first packet in the
// capture. Last and Ends grow while it lasts. If a limit requires it, it is passed on early, as
// Evicted; what comes of it then is a flow of its own.
type Flow struct {
	ID          int // from 1, in the order of first packets
	Src, Dst    netip.AddrPort
	Opened      bool
	First, Last time.Time
	FirstPacket int
	Ends        [2]End
	// Answered is the time of the SYN that answers the first one, Ended that of the first FIN or
	// RST, in direction EndedBy. Zero: not seen.
	Answered, Ended time.Time
	EndedBy         int
	Evicted         bool
	// TLS is what is known of the TLS that it is in, up to what was read last; nil: it is in none,
	// or nothing is decrypted.
	TLS *TLS
}

// End is how a direction ends. GapAfter is how many bytes are missing after the last captured one,
// as far as acknowledgements or FIN show.
type End struct {
	GapAfter      int64
	SYN, FIN, RST bool
}

// Mark is the packet that brought bytes. Acked is up to which offset of the other direction its
// sender had received that, 0 if that is not known.
type Mark struct {
	Time     time.Time
	PacketNo int
	Acked    int64
	Comments []string
}

// UDPDatagram is one UDP datagram; Missing bytes of it were not captured.
type UDPDatagram struct {
	Src, Dst netip.AddrPort
	Time     time.Time
	PacketNo int
	Data     []byte
	Missing  int
	Comments []string
}

// TLS is what is known of a connection in TLS.
type TLS struct {
	// Why is the reason why it is not decrypted, or not to its end; 0: it is.
	Why tlsrecord.Obstacle
	// Decrypted: something of it was decrypted. What its receiver takes is what was in TLS, at the
	// times at which its records were whole.
	Decrypted bool
	// Offered are the protocols that the client offered by ALPN; Protocol is the one that was
	// chosen.
	Offered  []string
	Protocol string
}
