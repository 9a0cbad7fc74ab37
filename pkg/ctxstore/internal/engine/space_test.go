package engine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/internal/engine"
)

// The least recently used shapes go until a tenth is free; one that cannot be dropped is passed
// over.
func TestSpace(t *testing.T) {
	const share = ctxstore.MaxShapeBytes
	for name, tc := range map[string]struct {
		uri         string
		most, need  int64
		others      int64
		sizes       []int64 // of shapes, by their last use
		stays       string  // a shape that cannot be dropped
		gone        []string
		fits, isFul bool
	}{
		"fits":     {most: 100, need: 10, others: 60, sizes: []int64{10, 20}, fits: true},
		"one goes": {most: 100, need: 11, others: 60, sizes: []int64{20, 10}, gone: []string{"0"}},
		"a tenth is free": {
			most: 100, need: 1, others: 50, sizes: []int64{5, 5, 40},
			gone: []string{"0", "1", "2"},
		},
		"one stays": {
			most: 100, need: 11, others: 60, sizes: []int64{10, 20}, stays: "0",
			gone: []string{"1"},
		},
		"no shapes would do": {most: 100, need: 50, others: 51, sizes: []int64{9}, isFul: true},
		"a shape, beyond the share of shapes": {
			uri: ctxstore.ShapeURI([32]byte{1}), most: 4 * share, need: 2, others: 5,
			sizes: []int64{share / 5, share * 4 / 5},
			gone:  []string{"0"},
		},
		"another entry, shapes beyond their share": {
			uri: "urn:x", most: 4 * share, need: 2, sizes: []int64{share, share}, fits: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var shapes []engine.Shape
			used := tc.others
			for i, size := range tc.sizes {
				shapes = append(shapes, engine.Shape{Name: string(rune('0' + i)), Size: size, Used: int64(i)})
				used += size
			}
			space := engine.Space{At: "/store", URI: tc.uri, Max: tc.most, Need: tc.need, Hint: "buy more"}
			assert.Equal(t, tc.fits, space.Fits(used))
			var gone []string
			err := space.Make(tc.others, shapes, func(s engine.Shape) bool {
				if s.Name == tc.stays {
					return false
				}
				gone = append(gone, s.Name)
				return true
			})
			assert.Equal(t, tc.gone, gone)
			if tc.isFul {
				require.ErrorIs(t, err, ctxstore.Full)
				assert.ErrorContains(t, err, "50 more bytes, the limit is 100 (raise the limit (MaxBytes; of hhfr "+
					"--store-size), buy more)")
				return
			}
			assert.NoError(t, err)
		})
	}
}
