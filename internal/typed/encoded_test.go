package typed_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/transcode"
)

// archived are messages in SOAP's encoding, as Axis 1.4 and gSOAP write them, by their files.
func archived(t *testing.T) (list map[string][]byte) {
	files, err := filepath.Glob(filepath.Join("..", "wsdl", "testdata", "encoded", "*.xml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	list = map[string][]byte{}
	for _, file := range files {
		m, err := os.ReadFile(file)
		require.NoError(t, err)
		list[filepath.Base(file)] = m
	}
	return list
}

// Messages in SOAP's encoding are split by shapes, the first of which takes no more with the WSDL,
// most of them less, and two together, too: types, arrays and encodingStyle are in their own
// shapes. The second may find more to copy from in a first that was text.
func TestEncodedMessagesAreTyped(t *testing.T) {
	c := load(t, filepath.Join("..", "wsdl", "testdata", "encoded", "archive.wsdl"))
	sum := 0.0
	list := archived(t)
	for file, m := range list {
		without, _ := costs(t, m, 2, transcode.Config{})
		with, total := costs(t, m, 2, transcode.Config{Description: c})
		sum += float64(with[0]) / float64(without[0])
		t.Logf("%s: %d of %d bytes", file, with[0], without[0])
		assert.LessOrEqual(t, with[0], without[0], file)
		assert.LessOrEqual(t, with[0]+with[1], without[0]+without[1], file)
		assert.Zero(t, total.Drifted, file)
		assert.EqualValues(t, 1, total.Learned, file)
	}
	t.Logf("the first takes %.3f of what it takes without", sum/float64(len(list)))
	assert.LessOrEqual(t, sum/float64(len(list)), 0.92)
}

// Values that are wrong in SOAP's encoding are counted, and travel all the same.
func TestBrokenEncodedMessagesAreCounted(t *testing.T) {
	c := load(t, filepath.Join("..", "wsdl", "testdata", "encoded", "archive.wsdl"))
	for file, m := range archived(t) {
		if !bytes.Contains(m, []byte(`href="#`)) {
			continue
		}
		lost := bytes.Replace(m, []byte(`href="#`), []byte(`href="#no`), 1)
		_, total := costs(t, lost, 2, transcode.Config{Description: c})
		assert.EqualValues(t, 2, total.Drifted, file)
	}
}

// The WSDLs of the corpus that stand beside messages in SOAP's encoding have own shapes of these.
func TestEncodedMessagesOnTheCorpus(t *testing.T) {
	dir := filepath.Join(shared.Dir(t), "corpus", "messages")
	described, all := 0, 0
	for _, file := range shared.Files(t, dir, func(p string) bool { return strings.HasSuffix(p, ".wsdl") }) {
		if !regexp.MustCompile(`use\s*=\s*["']encoded`).Match(shared.Read(t, file)) {
			continue
		}
		c := load(t, file)
		beside, err := filepath.Glob(filepath.Join(filepath.Dir(file), "re*.xml"))
		require.NoError(t, err)
		for _, m := range beside {
			all++
			d := c.Describe(shared.Read(t, m), true)
			if d == nil || d.Own == nil {
				t.Logf("%s is not described", m)
				continue
			}
			described++
		}
	}
	t.Logf("%d of %d messages are described", described, all)
	assert.GreaterOrEqual(t, described, 3)
}
