package accept_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/internal/accept"
)

// What is spare makes room: that of a peer that has its share, else that of the peer that has most
// of it, the lowest rank first. Nothing goes where that does not help.
func TestMakeRoom(t *testing.T) {
	thing := func(key, peer string, spare bool, rank int64) accept.Thing[string] {
		return accept.Thing[string]{Key: key, Peer: peer, Spare: spare, Rank: rank}
	}
	all := func() []accept.Thing[string] {
		return []accept.Thing[string]{
			thing("a1", "a", true, 5), thing("a2", "a", true, 4), thing("a3", "a", false, 1), thing("b1", "b", true, 2),
			thing("c1", "c", false, 3), thing("n1", "", true, 0),
		}
	}
	for name, c := range map[string]struct {
		peer          string
		most, perPeer int
		gone          []string
		full          bool
	}{
		"room for all":           {"d", 7, 4, nil, false},
		"of the one with most":   {"d", 6, 4, []string{"a2"}, false},
		"then the lowest rank":   {"d", 5, 4, []string{"a2", "n1"}, false},
		"its own share":          {"a", 9, 3, []string{"a2"}, false},
		"more than that":         {"a", 9, 2, []string{"a2", "a1"}, false},
		"nothing spare of it":    {"c", 9, 1, nil, true},
		"nobody has no share":    {"", 7, 1, nil, false},
		"not enough that is":     {"d", 2, 9, nil, true},
		"both bounds, one place": {"a", 6, 3, []string{"a2"}, false},
	} {
		gone, full := accept.MakeRoom(c.peer, c.most, c.perPeer, all())
		assert.Equal(t, c.gone, gone, name)
		assert.Equal(t, c.full, full, name)
	}
}
