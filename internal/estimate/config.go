package estimate

import (
	"errors"
	"fmt"
	"io"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/link"
)

// Config is what is to be estimated.
type Config struct {
	// Links are the links.
	Links []link.Profile
	// PricePerMB is the price of a million bytes on the link.
	PricePerMB float64
	// Description describes the messages to both halves of a pair; nil: nothing does.
	Description binary.Describer
	// PerAddress: the near half of the pair takes connections from one address for one client.
	PerAddress bool
	// ZstdLevel is that of the tunnel and of the dictionaries, as near as the library has it; 0
	// means 3.
	ZstdLevel int

	mostBehind int // for tests; 0: the constant
}

// Capture is a capture, which is read [Passes] times.
type Capture struct {
	Name   string
	Octets io.ReadSeeker
}

// Passes is how often captures are read, from their beginnings.
const Passes = 2

var (
	// ErrNoSOAP says that the captures have no whole call of plain SOAP.
	ErrNoSOAP = errors.New("no whole call of plain SOAP")
	// ErrManyServers says that the captures have calls to more servers than are estimated at once.
	ErrManyServers = fmt.Errorf("calls to more than %d servers", mostServers)
)

// mostServers bounds the pairs, each of which knows shapes of its own.
const mostServers = 256
