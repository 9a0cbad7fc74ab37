package peer

import (
	"bytes"
	"context"
	"errors"
	"strconv"

	"github.com/hhfr/hhfr/internal/bind"
)

// SumPath is where [Sum] stands.
const SumPath = "/sum"

// Sum adds numbers: the papers' float array addition. The text of the result follows from the
// request by these rules, whatever the machine:
//
//   - each item is an xs:float: white space around it does not count, its value is the binary32
//     nearest to the decimal, ties to even; one beyond the range is INF or -INF;
//   - the values are added in binary64, in their order, beginning with 0;
//   - the result is the binary32 nearest to that, written with the fewest digits that read back as
//     the same binary32: INF, -INF or NaN; without an exponent when it is 0 or from 0.001 to below
//     10000000 in size; else as digit, point, digits (at least one), E, exponent. It has no
//     trailing zeros and no plus sign, and is never -0.
func Sum() Service {
	return (&wrappedOperation{
		name: "sum", documentation: "Adds numbers: each as binary32, the sum in binary64, the result as " +
			"binary32 with the fewest digits that read back the same.",
		request: `<xs:element name="item" type="xs:float" minOccurs="0" maxOccurs="unbounded"/>`,
		reply:   `<xs:element name="result" type="xs:float"/>`,
		result:  "float",
		example: `<item>1.5</item><item>-0.25</item>`,
		answer: func(_ context.Context, e *envelope) (content, error) {
			sum := 0.0
			err := e.children(func(name string) error {
				if name != "item" {
					return refuse("%s is not expected here", name)
				}
				text, err := e.text(name)
				if err != nil {
					return err
				}
				v, err := parseFloat(collapse(text))
				sum += v
				return err
			})
			var b bytes.Buffer
			element(&b, "result", formatFloat(sum))
			return content{text: b.Bytes()}, err
		},
	}).service()
}

// parseFloat reads an xs:float (XML Schema part 2, section 3.2.4).
func parseFloat(text string) (float64, error) {
	v, err := bind.ParseFloat([]byte(text), 32)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, refuse("%.40q is no float", text)
	}
	return v, nil
}

// formatFloat writes a binary32; adding 0 makes 0 of -0.
func formatFloat(v float64) string {
	return string(bind.AppendFloat(nil, float64(float32(v))+0, 32))
}
