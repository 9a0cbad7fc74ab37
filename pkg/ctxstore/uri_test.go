package ctxstore_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/pkg/ctxstore"
)

func TestURIs(t *testing.T) {
	fp := [32]byte{0xab, 31: 1}
	uri := ctxstore.ShapeURI(fp)
	assert.Equal(t, "urn:hhfr:shape:sha256:ab"+strings.Repeat("00", 30)+"01", uri)
	got, ok := ctxstore.ParseShapeURI(uri)
	assert.True(t, ok)
	assert.Equal(t, fp, got)
	for _, bad := range []string{"", ctxstore.ShapePrefix, strings.ToUpper(uri),
		ctxstore.ShapePrefix + strings.Repeat("AB", 32), uri + "0", uri[1:]} {
		_, ok := ctxstore.ParseShapeURI(bad)
		assert.False(t, ok, bad)
	}
	assert.Equal(t, "urn:hhfr:session:01"+strings.Repeat("00", 15), ctxstore.SessionURI([16]byte{1}))
}

func TestErrors(t *testing.T) {
	err := error(&ctxstore.Error{Code: ctxstore.Full, URI: "urn:x", At: "/store", Hint: "free space",
		Err: io.ErrShortWrite})
	assert.Equal(t, `context store "/store": "urn:x": full: short write (free space)`, err.Error())
	assert.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.Full})
	assert.NotErrorIs(t, err, &ctxstore.Error{Code: ctxstore.Closed})
	assert.ErrorIs(t, fmt.Errorf("outer: %w", err), ctxstore.Full)
	assert.NotErrorIs(t, err, ctxstore.Closed)
	assert.EqualError(t, ctxstore.Full, "full")
	assert.ErrorIs(t, err, io.ErrShortWrite)
	assert.Equal(t, "context store: code 99", (&ctxstore.Error{Code: 99}).Error())
}

// Whatever is accepted as a URI is safe to print and to put into a line of text.
func FuzzCheckURI(f *testing.F) {
	for _, s := range []string{"", "urn:x", "a b", ctxstore.ShapePrefix, ctxstore.ShapeURI([32]byte{1}), "\xff",
		"../../x", "a\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		err := ctxstore.CheckURI(s)
		if err != nil {
			assert.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.Invalid})
			assert.Less(t, len(err.Error()), 10*ctxstore.MaxURI)
			return
		}
		assert.LessOrEqual(t, len(s), ctxstore.MaxURI)
		assert.Equal(t, []string{s}, strings.Fields(s))
		if fp, ok := ctxstore.ParseShapeURI(s); ok {
			assert.Equal(t, s, ctxstore.ShapeURI(fp))
		}
	})
}
