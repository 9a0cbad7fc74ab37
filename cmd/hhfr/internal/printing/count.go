package printing

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Count formats a number of things: 1 message, 2 messages, 3 replies.
func Count[N ~int | ~int64 | ~uint64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if stem, ok := strings.CutSuffix(thing, "y"); ok {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// plurals are the nouns in the names of kinds of things found in captures.
var plurals = regexp.MustCompile(`\b(connection|datagram|file|packet|request|stream)s\b`)

// Kinds lists things by kind, whose names are plural; "nothing" if there are none.
func Kinds(kinds map[string]int) string {
	var list []string
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		n := kinds[kind]
		if at := plurals.FindStringSubmatchIndex(kind); n == 1 && at != nil {
			kind = kind[:at[3]] + kind[at[1]:]
		}
		list = append(list, fmt.Sprintf("%d %s", n, kind))
	}
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, ", ")
}
