package link

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Profile describes a link. Both directions are alike.
type Profile struct {
	// Name of the profile it was made from.
	Name string
	// Bandwidth is that of each direction, in bits per second; required.
	Bandwidth int64
	// RTT is the round trip of an empty line.
	RTT time.Duration
	// Queue is the maximum that waits to be sent in each direction, in bytes with headers; 0 means
	// the bandwidth-delay product or 6000, whichever is more.
	Queue int
	// Loss is the share of datagrams that are lost, 0 to 1, and Seed determines which. A relay of
	// bytes loses none: see [Unsupported].
	Loss float64
	Seed uint64
	// Impairment is what else happens to datagrams; the same holds for it.
	Impairment
	// CPU is not of the link, but of a near end that is slow itself. Whoever sends adds it: a relay
	// does not know what a message is.
	CPU Computing
}

// Computing is how long a peer computes for a message: of plain SOAP, with its connection, and of a
// stream; and for each item that becomes text in plain SOAP.
type Computing struct{ Plain, Stream, Item time.Duration }

const (
	kbit = 1000
	mbit = 1000 * kbit
	// maxBandwidth keeps products of bytes and seconds within 63 bits.
	maxBandwidth int64 = 8_000 * mbit
	maxRTT             = time.Minute
	// maxQueue is the longest queue, in bytes; two of them still fit 31 bits.
	maxQueue = 1 << 29
)

// profiles are links of the kinds that are in use, from modems to wireless LAN.
var profiles = []Profile{
	{Name: "14k4", Bandwidth: 14_400, RTT: 1000 * time.Millisecond},
	{Name: "gprs", Bandwidth: 40 * kbit, RTT: 600 * time.Millisecond},
	{Name: "edge", Bandwidth: 120 * kbit, RTT: 400 * time.Millisecond},
	{Name: "3g", Bandwidth: 1 * mbit, RTT: 120 * time.Millisecond},
	{Name: "lte", Bandwidth: 20 * mbit, RTT: 50 * time.Millisecond},
	{Name: "geo", Bandwidth: 1 * mbit, RTT: 600 * time.Millisecond},
	{Name: "wifi", Bandwidth: 50 * mbit, RTT: 5 * time.Millisecond},
}

// treo600 is the phone of the HHFR papers with its link, fitted to their tables (docs/bench.md).
var treo600 = Profile{
	Name: "treo600", Bandwidth: 14_400, RTT: 320 * time.Millisecond,
	CPU: Computing{Plain: 2300 * time.Millisecond, Stream: 170 * time.Millisecond, Item: 20 * time.Millisecond},
}

// Names lists the profiles of links alone, thinnest first.
func Names() []string {
	var names []string
	for _, p := range profiles {
		names = append(names, p.Name)
	}
	return names
}

// ParseProfile parses the name of a profile and changes to it: `edge`, `gprs,rtt=1s,queue=12000`,
// `edge,loss=2%,reorder=1%,seed=7`, `geo,loss=5%,burst=4,jitter=30ms,dup=1%,mtu=576,outage=5s/60s`,
// `14k4,cpu=2s/130ms/25ms` ([Computing]).
// rate is in bits per second, with the suffix k or M for thousands or millions. Errors: BadProfile.
func ParseProfile(s string) (Profile, error) {
	name, rest, more := strings.Cut(s, ",")
	p := treo600
	if i := slices.IndexFunc(profiles, func(p Profile) bool { return p.Name == name }); i >= 0 {
		p = profiles[i]
	} else if name != p.Name {
		return Profile{}, &Error{Code: BadProfile,
			Err: fmt.Errorf("%q is not one of %s", name, strings.Join(Names(), ", "))}
	}
	seen := map[string]bool{}
	for more {
		var option string
		option, rest, more = strings.Cut(rest, ",")
		key, value, _ := strings.Cut(option, "=")
		if seen[key] {
			return Profile{}, &Error{Code: BadProfile, Err: fmt.Errorf("%s stands twice", key)}
		}
		seen[key] = true
		if err := p.set(key, value); err != nil {
			return Profile{}, &Error{Code: BadProfile, Err: fmt.Errorf("%q: %w", option, err)}
		}
	}
	return p.withDefaults()
}

// Speed is how many times faster than the link a clock can run, at most 20. The real time of
// computing and late timers, some half a millisecond per round trip, then stays below 2 % of the
// link's time. It is below 1 for links that are fast themselves.
func (p Profile) Speed() float64 {
	const roundTrip, most, least = 40 * time.Millisecond, 20, 0.125
	return min(max(float64(p.RTT)/float64(roundTrip), least), most)
}

func (p *Profile) set(key, value string) (err error) {
	switch key {
	case "rate":
		digits, unit := strings.TrimRight(value, "kM"), int64(1)
		switch value[len(digits):] {
		case "":
		case "k":
			unit = kbit
		case "M":
			unit = mbit
		default:
			return errors.New("rate is digits, then k, M or nothing")
		}
		p.Bandwidth, err = strconv.ParseInt(digits, 10, 40)
		p.Bandwidth *= unit
	case "rtt":
		p.RTT, err = time.ParseDuration(value)
	case "queue":
		p.Queue, err = strconv.Atoi(value)
	case "cpu":
		all := strings.SplitN(value, "/", 3)
		for i, to := range []*time.Duration{&p.CPU.Plain, &p.CPU.Stream, &p.CPU.Item} {
			if i == len(all) {
				return errors.New("cpu is PLAIN/STREAM/ITEM")
			}
			if *to, err = time.ParseDuration(all[i]); err != nil {
				return err
			}
		}
	case "loss":
		p.Loss, err = parseShare(value)
	case "seed":
		p.Seed, err = strconv.ParseUint(value, 10, 64)
	default:
		known, err := p.Impairment.set(key, value)
		if !known {
			return errors.New("not one of rate, rtt, cpu, queue, loss, seed, burst, jitter, reorder, dup, mtu, outage")
		}
		return err
	}
	return err
}

// withDefaults checks a profile and fills in what is zero.
func (p Profile) withDefaults() (Profile, error) {
	bad := func(format string, args ...any) (Profile, error) {
		return Profile{}, &Error{Code: BadProfile, Err: fmt.Errorf(format, args...)}
	}
	switch {
	case p.Bandwidth < 1 || p.Bandwidth > maxBandwidth:
		return bad("%d bits per second, 1 to %d are possible", p.Bandwidth, maxBandwidth)
	case p.RTT < 0 || p.RTT > maxRTT:
		return bad("round trip of %v, up to %v is possible", p.RTT, maxRTT)
	case p.Queue < 0 || p.Queue > maxQueue:
		return bad("queue of %d bytes, up to %d is possible", p.Queue, maxQueue)
	case min(p.CPU.Plain, p.CPU.Stream, p.CPU.Item) < 0 || max(p.CPU.Plain, p.CPU.Stream, p.CPU.Item) > maxRTT:
		return bad("computing for %v, 0 to %v each is possible", p.CPU, maxRTT)
	case !(p.Loss >= 0 && p.Loss <= 1):
		return bad("loss of %v, 0 to 1 is possible", p.Loss)
	}
	if err := p.check(p.Loss); err != nil {
		return bad("%w", err)
	}
	if p.Queue == 0 {
		p.Queue = max(p.carried(p.RTT), minQueue)
	}
	return p, nil
}

// forConnections checks a profile for a link that carries connections, and fills in what is zero.
func (p Profile) forConnections() (Profile, error) {
	p, err := p.withDefaults()
	switch {
	case err != nil:
		return p, err
	case p.Loss > 0:
		return p, &Error{Code: Unsupported, Err: errLoss}
	case p.Impairment != (Impairment{}):
		return p, &Error{Code: Unsupported, Err: errImpaired}
	case p.CPU != (Computing{}):
		return p, &Error{Code: Unsupported, Err: errComputing}
	}
	return p, nil
}

// carried is the number of bytes that the line sends in a time, up to maxQueue.
func (p *Profile) carried(d time.Duration) int {
	return int(min(p.Bandwidth/8*int64(d/time.Microsecond)/1_000_000, maxQueue))
}

var errComputing = errors.New("cpu is what a slow phone computes, and no link: only bench session adds it")

var errLoss = errors.New("loss is for datagrams; TCP over a link that loses needs the kernel's own TCP on both sides")
