package program

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
)

// Way is what calls take in one way of an estimate: bytes with 40 for the headers of each packet.
type Way struct {
	Way     string `json:"way"`
	Bytes   int    `json:"bytes"`
	Packets int    `json:"packets"`
}

// The ways of an estimate that are looked at.
const (
	Plain        = "plain"
	Zstd         = "zstd"
	FirstContact = "first_contact"
)

// Header is what a packet takes beside its payload, in bytes.
const Header = 40

// Payload is what is left of the bytes without the headers.
func (w Way) Payload() int { return w.Bytes - Header*w.Packets }

// Estimated is what `hhfr estimate` says of a capture.
type Estimated struct {
	Calls  int   `json:"calls"`
	Total  []Way `json:"total"`
	Steady []Way `json:"steady"`
}

// Of returns one of the ways; what is not there takes nothing.
func Of(ways []Way, name string) Way {
	i := slices.IndexFunc(ways, func(w Way) bool { return w.Way == name })
	if i < 0 {
		return Way{}
	}
	return ways[i]
}

// Estimate has `hhfr estimate` read a capture.
func Estimate(ctx context.Context, captured []byte, link string, perAddress bool) (e Estimated, err error) {
	args := []string{"estimate", "-", "-q", "-o", "json", "--link", link}
	if perAddress {
		args = append(args, "--client-per-address")
	}
	out, _, err := Run(ctx, bytes.NewReader(captured), args...)
	if err != nil {
		return e, err
	}
	said := struct{ Report *Estimated }{&e}
	if err := json.Unmarshal(out, &said); err != nil {
		return e, fmt.Errorf("hhfr estimate: %w", err)
	}
	return e, nil
}
