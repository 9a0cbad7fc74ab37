package workload

import (
	"fmt"
	"strings"
	"time"
)

const (
	cwmpRequestHead = `POST /acs HTTP/1.1
Host: acs.example.net:7547
User-Agent: HomeGate_CPE/7.12.40
Connection: keep-alive
SOAPAction: ""
Content-Type: text/xml; charset="utf-8"
Authorization: Digest username="00005E-HG26031400417", realm="acs", nonce="%s", uri="/acs", qop=auth, ` +
		`nc=00000001, cnonce="%s", response="%s", algorithm=MD5
`
	cwmpReplyHead = `HTTP/1.1 200 OK
Server: Jetty(9.4.51)
Date: %s
Set-Cookie: JSESSIONID=%s; Path=/; HttpOnly
Content-Type: text/xml;charset=utf-8
`
	cwmpInform = `<?xml version="1.0" encoding="UTF-8"?>
<soap-env:Envelope xmlns:soap-env="http://schemas.xmlsoap.org/soap/envelope/" ` +
		`xmlns:soap-enc="http://schemas.xmlsoap.org/soap/encoding/" xmlns:xsd="http://www.w3.org/2001/XMLSchema" ` +
		`xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:cwmp="urn:dslforum-org:cwmp-1-0">
  <soap-env:Header>
    <cwmp:ID soap-env:mustUnderstand="1">%d</cwmp:ID>
  </soap-env:Header>
  <soap-env:Body>
    <cwmp:Inform>
      <DeviceId>
        <Manufacturer>Example Networks</Manufacturer>
        <OUI>00005E</OUI>
        <ProductClass>HomeGate</ProductClass>
        <SerialNumber>HG26031400417</SerialNumber>
      </DeviceId>
      <Event soap-enc:arrayType="cwmp:EventStruct[%d]">
%s      </Event>
      <MaxEnvelopes>1</MaxEnvelopes>
      <CurrentTime>%s</CurrentTime>
      <RetryCount>0</RetryCount>
      <ParameterList soap-enc:arrayType="cwmp:ParameterValueStruct[%d]">
%s      </ParameterList>
    </cwmp:Inform>
  </soap-env:Body>
</soap-env:Envelope>
`
	cwmpEvent = `        <EventStruct>
          <EventCode>%s</EventCode>
          <CommandKey></CommandKey>
        </EventStruct>
`
	cwmpParameter = `        <ParameterValueStruct>
          <Name>InternetGatewayDevice.%s</Name>
          <Value xsi:type="xsd:%s">%s</Value>
        </ParameterValueStruct>
`
	cwmpInformResponse = `<soap-env:Envelope xmlns:soap-env="http://schemas.xmlsoap.org/soap/envelope/" ` +
		`xmlns:soap-enc="http://schemas.xmlsoap.org/soap/encoding/" xmlns:xsd="http://www.w3.org/2001/XMLSchema" ` +
		`xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:cwmp="urn:dslforum-org:cwmp-1-0">` +
		`<soap-env:Header><cwmp:ID soap-env:mustUnderstand="1">%d</cwmp:ID></soap-env:Header><soap-env:Body>` +
		`<cwmp:InformResponse><MaxEnvelopes>1</MaxEnvelopes></cwmp:InformResponse></soap-env:Body></soap-env:Envelope>`
	cwmpInterface = "WANDevice.1.WANConnectionDevice.1.WANIPConnection.1."
)

// inform is what a gateway reports each few minutes. Its address changes rarely, its counters
// always.
func (t *dialogue) inform(i int) (request, reply []byte) {
	for k := range t.counter {
		t.counter[k] += t.Int64N(40_000_000 >> (8 * (k / 2)))
	}
	id := 1_000_000_000 + t.IntN(1_000_000_000)
	events := fmt.Sprintf(cwmpEvent, "2 PERIODIC")
	changed := i%17 == 16
	if changed {
		events += fmt.Sprintf(cwmpEvent, "4 VALUE CHANGE")
	}
	local := t.now.In(time.FixedZone("", 3600)).Format("2006-01-02T15:04:05-07:00")
	values := [][3]string{
		{"DeviceSummary", "string", "InternetGatewayDevice:1.4[](Baseline:1, EthernetLAN:1, WiFiLAN:1)"},
		{"DeviceInfo.SpecVersion", "string", "1.0"},
		{"DeviceInfo.HardwareVersion", "string", "V2.1"},
		{"DeviceInfo.SoftwareVersion", "string", "7.12.40"},
		{"DeviceInfo.ProvisioningCode", "string", "HOME-STD"},
		{"DeviceInfo.UpTime", "unsignedInt", fmt.Sprint(864213 + 300*i)},
		{"ManagementServer.ConnectionRequestURL", "string",
			fmt.Sprintf("http://198.51.100.%d:30005/a81f03", 23+i/17)},
		{"ManagementServer.ParameterKey", "string", ""},
		{cwmpInterface + "ExternalIPAddress", "string", fmt.Sprintf("198.51.100.%d", 23+i/17)},
		{cwmpInterface + "Enable", "boolean", "1"},
		{cwmpInterface + "Stats.EthernetBytesSent", "unsignedInt", fmt.Sprint(t.counter[0])},
		{cwmpInterface + "Stats.EthernetBytesReceived", "unsignedInt", fmt.Sprint(t.counter[1])},
		{cwmpInterface + "Stats.EthernetPacketsSent", "unsignedInt", fmt.Sprint(t.counter[2])},
		{cwmpInterface + "Stats.EthernetPacketsReceived", "unsignedInt", fmt.Sprint(t.counter[3])},
		{"LANDevice.1.Hosts.HostNumberOfEntries", "unsignedInt", fmt.Sprint(9 + t.IntN(4))},
		{"Time.CurrentLocalTime", "dateTime", local},
	}
	var parameters strings.Builder
	for _, v := range values {
		fmt.Fprintf(&parameters, cwmpParameter, v[0], v[1], v[2])
	}
	request = message(fmt.Sprintf(cwmpRequestHead, t.hex(16), t.hex(8), t.hex(16)), fmt.Sprintf(cwmpInform, id,
		strings.Count(events, "<EventStruct>"), events, local, len(values), parameters.String()))
	return request, message(fmt.Sprintf(cwmpReplyHead, t.date(), strings.ToUpper(t.hex(13))),
		fmt.Sprintf(cwmpInformResponse, id))
}
