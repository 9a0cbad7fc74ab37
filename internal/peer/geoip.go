package peer

import (
	"bytes"
	"context"
	"strconv"
)

// GeoIPPath is where [GeoIP] stands.
const GeoIPPath = "/geoip"

// GeoIP reports whether an IPv4 address lies in a list of ranges: the service of the phones study,
// with its five answers. They are: GET of the description (/geoip.wsdl), any other GET: 404; a
// valid POST: true or false; an invalid POST: a fault; what is no HTTP: 400.
func GeoIP(ranges *Ranges) Service {
	return (&wrappedOperation{
		name: "geoip", documentation: "Reports whether an IPv4 address lies in a list of ranges. Those built in " +
			"are " + DutchRangesOrigin + ".",
		request: `<xs:element name="address" type="xs:string"/>`,
		reply:   `<xs:element name="result" type="xs:boolean"/>`,
		result:  "boolean",
		example: `<address>129.125.102.100</address>`,
		answer: func(_ context.Context, e *envelope) (content, error) {
			v, err := e.values([]string{"address"})
			if err != nil {
				return content{}, err
			}
			address, ok := parseAddress(collapse(v["address"]))
			if !ok {
				return content{}, refuse("%.40q is no IPv4 address", v["address"])
			}
			var b bytes.Buffer
			element(&b, "result", strconv.FormatBool(ranges.Contains(address)))
			return content{text: b.Bytes()}, nil
		},
	}).service()
}
