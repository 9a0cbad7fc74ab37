package link

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Impairment is what happens to datagrams in addition to [Profile.Loss], by chances that
// [Profile.Seed] determines. The zero value: nothing, at an MTU of 1500.
type Impairment struct {
	// Burst is the mean number of datagrams that are lost in a row; up to 1: losses are
	// independent.
	Burst float64
	// Jitter is the longest additional delay; it is uniformly distributed, and changes no order.
	Jitter time.Duration
	// Reorder and Duplicate are the shares of datagrams, 0 to 1, that others may overtake, and that
	// arrive twice.
	Reorder, Duplicate float64
	// MTU is the longest packet, in bytes with IP and UDP headers; 0 means 1500.
	MTU int
	// Outage is the duration of one outage of the line in each period of OutageEvery.
	Outage, OutageEvery time.Duration
}

const (
	minMTU = 68
	maxMTU = 65535
)

// set reads one option of a profile: burst=4, jitter=20ms, reorder=1%, dup=1%, mtu=576,
// outage=5s/60s.
func (i *Impairment) set(key, value string) (known bool, err error) {
	switch key {
	case "burst":
		i.Burst, err = strconv.ParseFloat(value, 64)
	case "jitter":
		i.Jitter, err = time.ParseDuration(value)
	case "reorder":
		i.Reorder, err = parseShare(value)
	case "dup":
		i.Duplicate, err = parseShare(value)
	case "mtu":
		i.MTU, err = strconv.Atoi(value)
		if err == nil && i.MTU == 0 {
			err = errors.New("no packet is that short")
		}
	case "outage":
		long, every, ok := strings.Cut(value, "/")
		if !ok {
			return true, errors.New("outage is LENGTH/PERIOD")
		}
		if i.Outage, err = time.ParseDuration(long); err == nil {
			i.OutageEvery, err = time.ParseDuration(every)
		}
	default:
		return false, nil
	}
	return true, err
}

// parseShare reads a share as a number or in percent.
func parseShare(value string) (float64, error) {
	percent, ok := strings.CutSuffix(value, "%")
	share, err := strconv.ParseFloat(percent, 64)
	if ok {
		share /= 100
	}
	return share, err
}

// check returns what is wrong.
func (i *Impairment) check(loss float64) error {
	switch {
	case !(i.Burst >= 0 && i.Burst <= 1000):
		return fmt.Errorf("bursts of %v, up to 1000 are possible", i.Burst)
	case i.Burst > 1 && loss < 1 && loss/(1-loss) > i.Burst:
		return fmt.Errorf("a loss of %v needs longer bursts than %v", loss, i.Burst)
	case i.Jitter < 0 || i.Jitter > maxRTT:
		return fmt.Errorf("jitter of %v, up to %v is possible", i.Jitter, maxRTT)
	case !(i.Reorder >= 0 && i.Reorder <= 1) || !(i.Duplicate >= 0 && i.Duplicate <= 1):
		return errors.New("shares are 0 to 1")
	case i.MTU != 0 && (i.MTU < minMTU || i.MTU > maxMTU):
		return fmt.Errorf("MTU of %d, %d to %d are possible", i.MTU, minMTU, maxMTU)
	case i.Outage < 0 || i.OutageEvery < i.Outage || i.OutageEvery > 24*time.Hour || i.Outage > 0 &&
		i.Outage == i.OutageEvery:
		return fmt.Errorf("outages of %v in %v", i.Outage, i.OutageEvery)
	}
	return nil
}

// Carries returns a BadProfile if datagrams of that many bytes are too long for the link: all of
// them would be dropped.
func (i Impairment) Carries(octets int) error {
	if least := octets + datagramHeaders; i.MTU != 0 && i.MTU < least {
		return &Error{Code: BadProfile, Err: fmt.Errorf("mtu=%d: streams over UDP have datagrams of %d bytes, for "+
			"which the MTU is at least %d", i.MTU, octets, least)}
	}
	return nil
}

var errImpaired = errors.New("burst, jitter, reorder, dup, mtu and outage are for datagrams")
