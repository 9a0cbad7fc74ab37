package lexical

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

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
		for _, text := range []string{javaFloat(f), dotNet(f), strconv.FormatFloat(f, 'e', -1, 64),
			strconv.FormatFloat(f, 'e', 5, 64)} {
			n, e, ok := ParseFloat([]byte(text))
			require.True(t, ok, text)
			require.True(t, e.Valid(), text)
			require.Equal(t, text, string(e.Append(n.Append(nil))))
		}
	}
}
