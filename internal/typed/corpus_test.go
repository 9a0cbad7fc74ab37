package typed_test

import (
	"bytes"
	"io"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/transcode"
	"github.com/hhfr/hhfr/internal/typed"
	"github.com/hhfr/hhfr/internal/wsdl"
	"github.com/hhfr/hhfr/pkg/soap"
)

// loaded are the contracts, which take some seconds to load.
var loaded struct {
	sync.Mutex
	all    []*typed.Contract
	beside map[string]*typed.Contract
}

// contracts are the WSDLs of the corpus, by their folders.
func contracts(t *testing.T, dir string) (all []*typed.Contract, beside map[string]*typed.Contract) {
	loaded.Lock()
	defer loaded.Unlock()
	if loaded.beside != nil {
		return loaded.all, loaded.beside
	}
	beside = map[string]*typed.Contract{}
	defer func() { loaded.all, loaded.beside = all, beside }()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".wsdl") {
			return err
		}
		if out, err := wsdl.Load(t.Context(), path, wsdl.SourceOptions{}); err == nil {
			c := typed.New(out)
			all = append(all, c)
			beside[filepath.Dir(path)] = c
		}
		return nil
	}))
	return all, beside
}

// describedMessages are the messages of the corpus that belong to one of its WSDLs: to the one
// beside them, or otherwise to any that describes what is in their Body.
func describedMessages(t *testing.T) iter.Seq2[[]byte, *typed.Contract] {
	dir := filepath.Join(shared.Dir(t), "corpus")
	all, beside := contracts(t, dir)
	isOf := func(c *typed.Contract, m []byte) bool {
		d := c.Describe(m, true)
		return d != nil && d.Own != nil
	}
	return func(yield func([]byte, *typed.Contract) bool) {
		for _, path := range shared.Files(t, filepath.Join(dir, "messages"), func(p string) bool {
			return !slices.Contains([]string{".wsdl", ".xsd"}, filepath.Ext(p))
		}) {
			m := shared.Read(t, path)
			c := beside[filepath.Dir(path)]
			if c == nil && !soap.Recognize(m).Fault { // any service may say that it failed
				if i := slices.IndexFunc(all, func(c *typed.Contract) bool { return isOf(c, m) }); i >= 0 {
					c = all[i]
				}
			}
			if c != nil && isOf(c, m) && !yield(m, c) {
				return
			}
		}
	}
}

// costs packs a message so many times, and returns what each takes: shape and content.
func costs(t *testing.T, m []byte, times int, cfg transcode.Config) (list []int64, total transcode.Figures) {
	seq := func(yield func(transcode.Packable, error) bool) {
		for range times {
			if !yield(transcode.Packable{Body: bytes.NewReader(m)}, nil) {
				return
			}
		}
	}
	total, err := transcode.Pack(t.Context(), io.Discard, seq, cfg, func(f transcode.Figures) error {
		list = append(list, f.Shape+f.Content)
		return nil
	})
	require.NoError(t, err)
	return list, total
}

// With the WSDL at both ends the first message of a kind takes no more than without, most a good
// deal less, and later ones take no more. All come back byte for byte, which packing checks.
func TestFirstMessagesOnTheCorpus(t *testing.T) {
	const times = 2
	sum, first, bare, n, drifted, texts := 0.0, int64(0), int64(0), 0, 0, 0
	for m, c := range describedMessages(t) {
		without, _ := costs(t, m, times, transcode.Config{})
		with, total := costs(t, m, times, transcode.Config{Description: c})
		sum += float64(with[0]) / float64(without[0])
		first += with[0]
		bare += without[0]
		n++
		for i := range times {
			assert.LessOrEqual(t, with[i], without[i], "message %d of %.80q", i+1, m)
		}
		if total.Drifted > 0 {
			drifted++
		}
		if total.Learned == 0 {
			texts++
		}
	}
	require.Greater(t, n, 60)
	t.Logf("%d messages, %d of them not as described; the first takes %d bytes, %d without, %.3f in the mean", n,
		drifted, first/int64(n), bare/int64(n), sum/float64(n))
	assert.LessOrEqual(t, sum/float64(n), 0.86)
	assert.Less(t, first/int64(n), int64(150))
	assert.Less(t, texts, n/10, "messages that no shape was made of")
}

// The own shape of an operation does not grow with the rest of its WSDL, and it can be made of
// every operation of the corpus, within its bounds.
func TestOwnShapesOnTheCorpus(t *testing.T) {
	all, _ := contracts(t, filepath.Join(shared.Dir(t), "corpus"))
	kinds := 0
	for _, c := range all {
		for own := range c.OwnShapes() {
			kinds++
			require.NotNil(t, own)
			assert.LessOrEqual(t, len(own.Octets()), 32<<10)
		}
	}
	t.Logf("%d own shapes", kinds)
	assert.Greater(t, kinds, 1000)
}
