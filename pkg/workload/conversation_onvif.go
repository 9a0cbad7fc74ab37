package workload

import (
	"fmt"
	"strings"
	"time"
)

const (
	onvifRequestHead = `POST /onvif/subscription?idx=4 HTTP/1.1
Host: 192.0.2.64
User-Agent: gSOAP/2.8
Content-Type: application/soap+xml; charset=utf-8; action="http://www.onvif.org/ver10/events/wsdl/` +
		`PullPointSubscription/PullMessagesRequest"
Connection: %s
`
	onvifReplyHead = `HTTP/1.1 200 OK
Server: gSOAP/2.8
X-Frame-Options: SAMEORIGIN
Content-Type: application/soap+xml; charset=utf-8
Connection: %s
`
	onvifRequest = `<?xml version="1.0" encoding="UTF-8"?>
<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope" xmlns:a="http://www.w3.org/2005/08/addressing">` +
		`<s:Header><a:Action s:mustUnderstand="1">http://www.onvif.org/ver10/events/wsdl/PullPointSubscription/` +
		`PullMessagesRequest</a:Action><a:MessageID>urn:uuid:%s</a:MessageID><a:ReplyTo>` +
		`<a:Address>http://www.w3.org/2005/08/addressing/anonymous</a:Address></a:ReplyTo>` +
		`<wsse:Security s:mustUnderstand="1"` +
		` xmlns:wsse="http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd"` +
		` xmlns:wsu="http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd">` +
		`<wsse:UsernameToken><wsse:Username>viewer</wsse:Username>` +
		`<wsse:Password Type="http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-username-token-profile-1.0` +
		`#PasswordDigest">%s</wsse:Password>` +
		`<wsse:Nonce ` +
		`EncodingType="http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-soap-message-security-1.0` +
		`#Base64Binary">%s</wsse:Nonce><wsu:Created>%s</wsu:Created></wsse:UsernameToken></wsse:Security>` +
		`<a:To s:mustUnderstand="1">http://192.0.2.64/onvif/subscription?idx=4</a:To></s:Header><s:Body>` +
		`<PullMessages xmlns="http://www.onvif.org/ver10/events/wsdl"><Timeout>PT10S</Timeout>` +
		`<MessageLimit>32</MessageLimit></PullMessages></s:Body></s:Envelope>`
	onvifReply = `<?xml version="1.0" encoding="UTF-8"?>
<SOAP-ENV:Envelope xmlns:SOAP-ENV="http://www.w3.org/2003/05/soap-envelope"` +
		` xmlns:wsa5="http://www.w3.org/2005/08/addressing" xmlns:wsnt="http://docs.oasis-open.org/wsn/b-2"` +
		` xmlns:tev="http://www.onvif.org/ver10/events/wsdl" xmlns:tt="http://www.onvif.org/ver10/schema"` +
		` xmlns:tns1="http://www.onvif.org/ver10/topics"><SOAP-ENV:Header>` +
		`<wsa5:Action SOAP-ENV:mustUnderstand="true">http://www.onvif.org/ver10/events/wsdl/PullPointSubscription/` +
		`PullMessagesResponse</wsa5:Action><wsa5:RelatesTo>urn:uuid:%s</wsa5:RelatesTo>` +
		`</SOAP-ENV:Header><SOAP-ENV:Body>` +
		`<tev:PullMessagesResponse><tev:CurrentTime>%s</tev:CurrentTime><tev:TerminationTime>%s</tev:TerminationTime>` +
		`%s</tev:PullMessagesResponse></SOAP-ENV:Body></SOAP-ENV:Envelope>`
	onvifMotion = `<wsnt:NotificationMessage>` +
		`<wsnt:Topic Dialect="http://www.onvif.org/ver10/tev/topicExpression/ConcreteSet">` +
		`tns1:RuleEngine/CellMotionDetector/Motion</wsnt:Topic><wsnt:Message>` +
		`<tt:Message UtcTime="%s" PropertyOperation="Changed"><tt:Source>` +
		`<tt:SimpleItem Name="VideoSourceConfigurationToken" Value="vsc0"/>` +
		`<tt:SimpleItem Name="VideoAnalyticsConfigurationToken" Value="vac0"/>` +
		`<tt:SimpleItem Name="Rule" Value="MotionRegion%d"/></tt:Source><tt:Data>` +
		`<tt:SimpleItem Name="IsMotion" Value="%t"/></tt:Data></tt:Message></wsnt:Message></wsnt:NotificationMessage>`
	onvifInput = `<wsnt:NotificationMessage>` +
		`<wsnt:Topic Dialect="http://www.onvif.org/ver10/tev/topicExpression/ConcreteSet">` +
		`tns1:Device/Trigger/DigitalInput</wsnt:Topic><wsnt:Message>` +
		`<tt:Message UtcTime="%s" PropertyOperation="Changed"><tt:Source>` +
		`<tt:SimpleItem Name="InputToken" Value="din1"/></tt:Source><tt:Data>` +
		`<tt:SimpleItem Name="LogicalState" Value="%t"/></tt:Data></tt:Message></wsnt:Message>` +
		`</wsnt:NotificationMessage>`
)

// poll asks a camera for its events, of which there is often none.
func (t *dialogue) poll(int) (request, reply []byte) { return t.pollBy("keep-alive") }

func (t *dialogue) pollAnew(int) (request, reply []byte) { return t.pollBy("close") }

func (t *dialogue) pollBy(connection string) (request, reply []byte) {
	id := uuid(t.Rand)
	request = message(fmt.Sprintf(onvifRequestHead, connection), fmt.Sprintf(onvifRequest, id, random64(t.Rand, 20),
		random64(t.Rand, 16), stamp(t.now)))
	var events strings.Builder
	answered := t.now.Add(2 * time.Second)
	for at := t.now; t.IntN(5) < 2; {
		at = at.Add(time.Duration(t.IntN(700)) * time.Millisecond)
		if t.IntN(4) == 0 {
			fmt.Fprintf(&events, onvifInput, stamp(at), t.IntN(2) == 0)
		} else {
			fmt.Fprintf(&events, onvifMotion, stamp(at), 1+t.IntN(3), t.IntN(2) == 0)
		}
	}
	return request, message(fmt.Sprintf(onvifReplyHead, connection), fmt.Sprintf(onvifReply, id, second(answered),
		second(answered.Add(time.Minute)), events.String()))
}
