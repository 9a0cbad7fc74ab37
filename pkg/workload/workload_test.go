package workload_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/workload"
)

var kinds = []struct {
	folder string
	size   int // mean bytes of a message, from the table of the goals
	slack  float64
	make   func(seed uint64) iter.Seq[[]byte]
}{
	{"w1-4strings", 510, 0, func(s uint64) iter.Seq[[]byte] { return workload.Strings(s, 4) }},
	{"w1-8strings", 658, 0, func(s uint64) iter.Seq[[]byte] { return workload.Strings(s, 8) }},
	{"w2-10floats", 583, 0.01, func(s uint64) iter.Seq[[]byte] { return workload.Floats(s, 10) }},
	{"w2-100floats", 2594, 0.01, func(s uint64) iter.Seq[[]byte] { return workload.Floats(s, 100) }},
	{"w2-1000floats", 22711, 0.01, func(s uint64) iter.Seq[[]byte] { return workload.Floats(s, 1000) }},
	{"w3-20records", 1611, 0.01, func(s uint64) iter.Seq[[]byte] { return workload.Records(s, 20) }},
	{"w3-100records", 6610, 0.01, func(s uint64) iter.Seq[[]byte] { return workload.Records(s, 100) }},
	{"w3-500records", 31610, 0.01, func(s uint64) iter.Seq[[]byte] { return workload.Records(s, 500) }},
	{"w5-headers", 1718, 0.01, workload.Headers},
}

func TestSizesAreThoseOfTheTable(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.folder, func(t *testing.T) {
			sum := 0
			list := first(k.make(1), 100)
			for _, m := range list {
				sum += len(m)
				wellFormed(t, m)
			}
			assert.InDelta(t, k.size, float64(sum)/float64(len(list)), k.slack*float64(k.size))
			assert.NotEqual(t, list[0], list[1])
		})
	}
}

func TestTheSameSeedGivesTheSameMessages(t *testing.T) {
	for _, k := range kinds {
		seq := k.make(7)
		a := first(seq, 3)
		assert.Equal(t, a, first(seq, 3), "%s ranged over again", k.folder)
		assert.Equal(t, a, first(k.make(7), 3), k.folder)
		assert.NotEqual(t, a, first(k.make(8), 3), k.folder)
	}
	assert.Equal(t, workload.Blob(3, 1000), workload.Blob(3, 1000))
}

func TestBlobIsBase64(t *testing.T) {
	for _, n := range []int{0, 1, 7, 8, 1 << 20} {
		m := workload.Blob(1, n)
		wellFormed(t, m)
		assert.InDelta(t, (n+2)/3*4, len(m), 450)
	}
}

// The folder's messages and ours are the same text after the values are removed.
func TestMessagesAreThoseOfTheFolder(t *testing.T) {
	root := shared.Dir(t, "workloads")
	for _, k := range kinds {
		t.Run(k.folder, func(t *testing.T) {
			theirs, err := workload.Load(filepath.Join(root, k.folder))
			require.NoError(t, err)
			ours := first(k.make(1), len(theirs))
			for i := range theirs {
				require.Equal(t, withoutValues(theirs[i]), withoutValues(ours[i]), "message %d", i+1)
			}
		})
	}
}

func TestLoadRefusesAnEmptyFolder(t *testing.T) {
	_, err := workload.Load(t.TempDir())
	assert.ErrorContains(t, err, "no messages")
}

var value = regexp.MustCompile(`>[^<>\n]+<`)

func withoutValues(m []byte) string { return value.ReplaceAllString(string(m), "><") }

func first(seq iter.Seq[[]byte], n int) [][]byte {
	var list [][]byte
	for m := range seq {
		if list = append(list, m); len(list) == n {
			break
		}
	}
	return list
}

func wellFormed(t *testing.T, m []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(m))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v in %.200q", err, m)
		}
	}
}

// Conversations are HTTP with envelopes, whose values change from call to call.
func TestConversations(t *testing.T) {
	for _, c := range workload.Conversations() {
		t.Run(c.Name, func(t *testing.T) {
			var before [2][]byte
			var changed [2]bool
			n := 0
			for request, reply := range c.Calls(1) {
				for i, m := range [2][]byte{request, reply} {
					head, body, whole := bytes.Cut(m, []byte("\r\n\r\n"))
					require.True(t, whole)
					assert.Contains(t, string(head), fmt.Sprintf("Content-Length: %d", len(body)))
					wellFormed(t, body)
					changed[i] = changed[i] || n > 0 && !bytes.Equal(before[i], m)
				}
				if before = [2][]byte{request, reply}; n == 30 {
					break
				}
				n++
			}
			assert.Equal(t, [2]bool{true, true}, changed)
		})
	}
}
