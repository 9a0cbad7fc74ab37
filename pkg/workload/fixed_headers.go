package workload

import (
	"fmt"
	"iter"
	"strings"
)

// FixedHeaders yields W6 without end: a reading of a meter under 1.5 KB of header blocks that are
// the same in all messages, and 300 bytes of blocks that are not. The first ones stand next to one
// another.
func FixedHeaders(seed uint64) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		rnd := generator(seed)
		sequence := uuid(rnd)
		fixed := fmt.Sprintf(fixedText, uuid(rnd), random64(rnd, 417), uuid(rnd))
		for i := 0; ; i++ {
			b := fmt.Appendf(nil, fixedHeadersText, fixed, uuid(rnd), sequence, i+1, 20000+rnd.IntN(5000))
			if !yield(b) {
				return
			}
		}
	}
}

// FixedHeaderNames are the names of the blocks of W6 that do not change, as {namespace}name.
func FixedHeaderNames() []string {
	return strings.Fields(`{http://www.w3.org/2005/08/addressing}To {http://www.w3.org/2005/08/addressing}Action
		{http://www.w3.org/2005/08/addressing}ReplyTo {urn:example:fleet}Device {urn:example:fleet}Profile`)
}

const fixedText = `<wsa:To xmlns:wsa="http://www.w3.org/2005/08/addressing" soapenv:mustUnderstand="1">` +
	`https://head-end.example.org/services/metering/v3/readings</wsa:To>` +
	`<wsa:Action xmlns:wsa="http://www.w3.org/2005/08/addressing">` +
	`http://metering.example.org/2024/readings/ReadingService/reportReading</wsa:Action>` +
	`<wsa:ReplyTo xmlns:wsa="http://www.w3.org/2005/08/addressing">` +
	`<wsa:Address>https://concentrator-17.example.org:8443/replies</wsa:Address><wsa:ReferenceParameters>` +
	`<f:Route xmlns:f="urn:example:fleet">%s</f:Route></wsa:ReferenceParameters></wsa:ReplyTo>` +
	`<f:Device xmlns:f="urn:example:fleet" model="MX-4100" firmware="4.17.2-r3"><f:Site>substation 0042, ` +
	`feeder 7</f:Site><f:Certificate>%s</f:Certificate></f:Device>` +
	`<f:Profile xmlns:f="urn:example:fleet"><f:Id>urn:uuid:%s</f:Id><f:Units>Wh var V A Hz</f:Units>` +
	`<f:Registers>1-0:1.8.0 1-0:2.8.0 1-0:3.8.0 1-0:4.8.0</f:Registers></f:Profile>`

const fixedHeadersText = `<?xml version="1.0" encoding="UTF-8"?>` + "\n" +
	`<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"><soapenv:Header>%s` +
	`<wsa:MessageID xmlns:wsa="http://www.w3.org/2005/08/addressing">urn:uuid:%s</wsa:MessageID>` +
	`<wsrm:Sequence xmlns:wsrm="http://schemas.xmlsoap.org/ws/2005/02/rm"><wsrm:Identifier>urn:seq:%.12s` +
	`</wsrm:Identifier><wsrm:MessageNumber>%d</wsrm:MessageNumber></wsrm:Sequence>` +
	`</soapenv:Header><soapenv:Body><m:reading xmlns:m="urn:example:meter">%d</m:reading></soapenv:Body>` +
	`</soapenv:Envelope>`
