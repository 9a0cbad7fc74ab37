package learn

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shape"
)

// What a toolkit writes with an exponent is learned as such.
func TestFloatsAreLearned(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 20_000 {
		f := (rnd.Float64() - 0.5) * []float64{1e-300, 1e-20, 1e-5, 1, 1e7, 1e16, 1e300}[rnd.IntN(7)]
		for _, text := range []string{strconv.FormatFloat(f, 'E', -1, 64), strconv.FormatFloat(f, 'e', 5, 64)} {
			require.Equal(t, shape.TypeScientific, typeOf([]byte(text)), text)
		}
	}
}

func TestFloatsAndOthers(t *testing.T) {
	for text, typ := range map[string]shape.Type{"1.0E-5": shape.TypeScientific, "1E-05": shape.TypeScientific,
		"1e+10": shape.TypeScientific, "NaN": shape.TypeFloat, "INF": shape.TypeFloat, "-INF": shape.TypeFloat,
		"1.5e3": shape.TypeScientific, "0.0E0": shape.TypeScientific,
		"5E10": shape.TypeText, "1E-0": shape.TypeText, "1.E5": shape.TypeText, "01.0E5": shape.TypeText,
		"1.0E": shape.TypeText, "1.0E+": shape.TypeText, "1.0E+0001": shape.TypeText, "1.0E5x": shape.TypeText,
		"E5": shape.TypeText, "nan": shape.TypeText, "Infinity": shape.TypeText, "1.0e1000": shape.TypeText} {
		assert.Equal(t, typ, typeOf([]byte(text)), text)
	}
}
