package flags

import (
	"fmt"
	"strconv"
	"strings"
)

// Size is a flag's number of bytes: 4096, 4KiB, 64K, 1MB.
type Size int64

var units = []struct {
	suffix string
	octets int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1000}, {"MB", 1e6}, {"GB", 1e9}, {"K", 1 << 10},
	{"M", 1 << 20}, {"G", 1 << 30}, {"B", 1}, {"", 1}}

// Set parses a size.
func (s *Size) Set(text string) error {
	for _, u := range units {
		digits, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n <= 0 || n > (1<<62)/u.octets {
			break
		}
		*s = Size(n * u.octets)
		return nil
	}
	return fmt.Errorf("%q is no size; write 4096, 4KiB or 1MB", text)
}

func (s *Size) String() string { return SizeText(int64(*s)) }

// SizeText is a number of bytes as a flag takes it.
func SizeText(n int64) string {
	switch {
	case n > 0 && n%(1<<30) == 0:
		return fmt.Sprintf("%dGiB", n>>30)
	case n > 0 && n%(1<<20) == 0:
		return fmt.Sprintf("%dMiB", n>>20)
	case n > 0 && n%(1<<10) == 0:
		return fmt.Sprintf("%dKiB", n>>10)
	}
	return strconv.FormatInt(n, 10)
}

// Type is the flag's type in help texts.
func (s *Size) Type() string { return "SIZE" }
