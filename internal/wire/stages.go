package wire

import (
	"fmt"
	"strings"
)

// Stages of a stream (wire-format section 3).
const (
	// Columns: segments are packed, each message for itself.
	Columns uint64 = 1 << iota
	// Memory: a message in one frame is packed with the memory of its lane. It needs Columns.
	Memory
	// Zstd: segments are compressed that get smaller by it, each for itself. It remembers nothing.
	Zstd
	_ // [frame.Headers]
	_ // [frame.BriefHello]
	// Plain: what is first of its kind travels as text, and both ends make its plain shape. It
	// needs Zstd.
	Plain

	allStages = Columns | Memory | Zstd | Plain
)

// StageNames are the names of the stages, in the order of their bits.
func StageNames() []string { return []string{"columns", "memory", "zstd", "plain"} }

// stageBits are those of the stages.
var stageBits = [...]uint64{Columns, Memory, Zstd, Plain}

// NamesOf gives the names of stages.
func NamesOf(stages uint64) (names []string) {
	for i, name := range StageNames() {
		if stages&stageBits[i] != 0 {
			names = append(names, name)
		}
	}
	return names
}

// ParseStages reads names of stages with commas between them; none if there is nothing.
func ParseStages(names string) (stages uint64, err error) {
next:
	for name := range strings.SplitSeq(names, ",") {
		for i, known := range StageNames() {
			if name == known {
				stages |= stageBits[i]
				continue next
			}
		}
		if names != "" {
			return 0, fmt.Errorf("%q is no stage; there are %s", name, strings.Join(StageNames(), ", "))
		}
	}
	return stages, nil
}
