package peer

import (
	"bufio"
	"cmp"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"slices"
	"sort"
	"strings"
)

// Ranges is a set of IPv4 addresses as a sorted array: the first address of a range at each even
// index, its last at the odd one behind. It is immutable.
type Ranges struct{ bounds []uint32 }

// maxRanges bounds a list, in ranges: more than there are prefixes in the world's routing tables.
const maxRanges = 4 << 20

// DutchRangesOrigin says where [DutchRanges] comes from, and under which licence.
const DutchRangesOrigin = "the IPv4 ranges registered for the Netherlands, " +
	"from github.com/pcwrt-router/country-ip-blocks (country/nl/ipv4-aggregated.txt, " +
	"commit 0393aa3d4022b61b818c25b92081e12a2ef68101), CC0-1.0"

// dutch is made of that file by the test of DutchRanges, run with -update.
//
//go:embed data/nl-ipv4.bin
var dutch []byte

// DutchRanges are the ranges built in: see [DutchRangesOrigin].
func DutchRanges() *Ranges {
	r, err := unpackRanges(dutch)
	if err != nil {
		panic(err) // part of the program, and held by a test
	}
	return r
}

// ParseRanges reads a list of ranges: one a line, as ADDRESS/LENGTH, FIRST-LAST or ADDRESS; #
// begins a comment. They may overlap, in any order. An error is of code BadRanges, and names the
// line.
func ParseRanges(r io.Reader) (*Ranges, error) {
	var pairs [][2]uint32
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		pair, err := parseRange(line)
		if err == nil && len(pairs) == maxRanges {
			err = fmt.Errorf("more than %d ranges", maxRanges)
		}
		if err != nil {
			return nil, &Error{Code: BadRanges, Err: fmt.Errorf("line %d: %w", n, err)}
		}
		pairs = append(pairs, pair)
	}
	if err := lines.Err(); err != nil {
		return nil, &Error{Code: BadRanges, Err: err}
	}
	if len(pairs) == 0 {
		return nil, &Error{Code: BadRanges, Err: errors.New("no ranges")}
	}
	slices.SortStableFunc(pairs, func(a, b [2]uint32) int { return cmp.Compare(a[0], b[0]) })
	bounds := []uint32{pairs[0][0], pairs[0][1]}
	for _, p := range pairs[1:] {
		last := &bounds[len(bounds)-1]
		if *last == math.MaxUint32 || p[0] <= *last+1 {
			*last = max(*last, p[1])
			continue
		}
		bounds = append(bounds, p[0], p[1])
	}
	return &Ranges{slices.Clip(bounds)}, nil
}

func parseRange(line string) (pair [2]uint32, err error) {
	if strings.Contains(line, "/") {
		p, err := netip.ParsePrefix(line)
		if err != nil || !p.Addr().Is4() {
			return pair, fmt.Errorf("%.60q is no IPv4 range", line)
		}
		first, _ := parseAddress(p.Masked().Addr().String())
		return [2]uint32{first, first | uint32(uint64(math.MaxUint32)>>p.Bits())}, nil
	}
	from, to, two := strings.Cut(line, "-")
	if !two {
		to = from
	}
	first, ok := parseAddress(strings.TrimSpace(from))
	last, ok2 := parseAddress(strings.TrimSpace(to))
	if !ok || !ok2 || last < first {
		return pair, fmt.Errorf("%.60q is no IPv4 range", line)
	}
	return [2]uint32{first, last}, nil
}

func parseAddress(text string) (uint32, bool) {
	a, err := netip.ParseAddr(text)
	if err != nil || !a.Is4() {
		return 0, false
	}
	octets := a.As4()
	return binary.BigEndian.Uint32(octets[:]), true
}

// Len is how many ranges there are; those that touch count as one.
func (r *Ranges) Len() int { return len(r.bounds) / 2 }

// At gives the first and the last address of a range, from 0 to below Len.
func (r *Ranges) At(i int) (first, last uint32) { return r.bounds[2*i], r.bounds[2*i+1] }

// Contains finds an address by binary search: it is in a range if the first bound not below it is
// the end of one, or is the address itself.
func (r *Ranges) Contains(address uint32) bool {
	i := sort.Search(len(r.bounds), func(i int) bool { return r.bounds[i] >= address })
	return i < len(r.bounds) && (i%2 == 1 || r.bounds[i] == address)
}

func unpackRanges(b []byte) (*Ranges, error) {
	r := &Ranges{}
	var at uint64
	for len(b) > 0 {
		v, n := binary.Uvarint(b)
		if n <= 0 || at+v > math.MaxUint32 {
			return nil, &Error{Code: BadRanges, Err: errors.New("malformed list")}
		}
		at += v
		r.bounds = append(r.bounds, uint32(at))
		b = b[n:]
	}
	if len(r.bounds)%2 != 0 {
		return nil, &Error{Code: BadRanges, Err: errors.New("a range has no end")}
	}
	return r, nil
}
