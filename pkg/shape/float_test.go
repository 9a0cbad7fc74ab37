package shape

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// javaFloat writes as Double.toString does where it uses an exponent, dotNet as XmlConvert does.
func javaFloat(f float64) string {
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'E', -1, 64), "E")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	x, _ := strconv.Atoi(exponent)
	return mantissa + "E" + strconv.Itoa(x)
}

func dotNet(f float64) string { return strconv.FormatFloat(f, 'E', -1, 64) }

func TestFloatsOfToolkits(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 20_000 {
		f := (rnd.Float64() - 0.5) * []float64{1e-300, 1e-20, 1e-5, 1, 1e7, 1e16, 1e300}[rnd.IntN(7)]
		for _, text := range []string{javaFloat(f), dotNet(f), strconv.FormatFloat(f, 'e', -1, 64), strconv.FormatFloat(f, 'e', 5, 64)} {
			n, e, ok := parseFloat([]byte(text))
			require.True(t, ok, text)
			require.True(t, e.valid(), text)
			require.Equal(t, text, string(e.append(n.append(nil))))
			require.Equal(t, TypeScientific, typeOf([]byte(text)), text)
		}
	}
}

func TestFloatsAndOthers(t *testing.T) {
	for text, typ := range map[string]Type{"1.0E-5": TypeScientific, "1E-05": TypeScientific, "1e+10": TypeScientific, "NaN": TypeFloat, "INF": TypeFloat, "-INF": TypeFloat, "1.5e3": TypeScientific, "0.0E0": TypeScientific,
		"5E10": TypeText, "1E-0": TypeText, "1.E5": TypeText, "01.0E5": TypeText, "1.0E": TypeText, "1.0E+": TypeText, "1.0E+0001": TypeText, "1.0E5x": TypeText, "E5": TypeText, "nan": TypeText, "Infinity": TypeText, "1.0e1000": TypeText} {
		assert.Equal(t, typ, typeOf([]byte(text)), text)
	}
}
