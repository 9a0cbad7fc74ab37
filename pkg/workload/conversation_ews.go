package workload

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

const (
	ewsRequestHead = `POST /EWS/Exchange.asmx HTTP/1.1
Host: mail.example.com
User-Agent: exchangelib/5.4.0 (python-requests/2.32.3)
Accept-Encoding: identity
Accept: */*
Connection: keep-alive
Content-Type: text/xml; charset=utf-8
Authorization: Basic dmlld2VyQGV4YW1wbGUuY29tOm5vdC1hLXJlYWwtcGFzc3dvcmQ=
X-AnchorMailbox: viewer@example.com
Cookie: exchangecookie=5d0e1c3b7a2948f6b1c04e9d8a7f6352
`
	ewsReplyHead = `HTTP/1.1 200 OK
Cache-Control: private
Content-Type: text/xml; charset=utf-8
Server: Microsoft-IIS/10.0
request-id: %s
X-CalculatedBETarget: ex2.example.com
X-DiagInfo: EX2
X-BEServer: EX2
X-AspNet-Version: 4.0.30319
X-Powered-By: ASP.NET
X-FEServer: EX1
Date: %s
`
	ewsRequestOpen = `<?xml version='1.0' encoding='utf-8'?>
<s:Envelope xmlns:m="http://schemas.microsoft.com/exchange/services/2006/messages" ` +
		`xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" ` +
		`xmlns:t="http://schemas.microsoft.com/exchange/services/2006/types"><s:Header>` +
		`<t:RequestServerVersion Version="Exchange2016"/><t:TimeZoneContext>` +
		`<t:TimeZoneDefinition Id="W. Europe Standard Time"/></t:TimeZoneContext></s:Header><s:Body>`
	ewsFind = `<m:FindItem Traversal="Shallow"><m:ItemShape><t:BaseShape>IdOnly</t:BaseShape>` +
		`<t:AdditionalProperties><t:FieldURI FieldURI="item:Subject"/><t:FieldURI FieldURI="item:DateTimeReceived"/>` +
		`<t:FieldURI FieldURI="item:Size"/><t:FieldURI FieldURI="message:IsRead"/></t:AdditionalProperties>` +
		`</m:ItemShape><m:IndexedPageItemView MaxEntriesReturned="12" Offset="0" BasePoint="Beginning"/>` +
		`<m:ParentFolderIds><t:DistinguishedFolderId Id="inbox"/></m:ParentFolderIds></m:FindItem>`
	ewsGet = `<m:GetItem><m:ItemShape><t:BaseShape>Default</t:BaseShape>` +
		`<t:IncludeMimeContent>false</t:IncludeMimeContent><t:BodyType>Text</t:BodyType></m:ItemShape><m:ItemIds>` +
		`<t:ItemId Id="%s" ChangeKey="%s"/></m:ItemIds></m:GetItem>`
	ewsReplyOpen = `<?xml version="1.0" encoding="utf-8"?>` +
		`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Header>` +
		`<h:ServerVersionInfo MajorVersion="15" MinorVersion="1" MajorBuildNumber="2507" MinorBuildNumber="39" ` +
		`Version="V2017_07_11" xmlns:h="http://schemas.microsoft.com/exchange/services/2006/types" ` +
		`xmlns="http://schemas.microsoft.com/exchange/services/2006/types" ` +
		`xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"/>` +
		`</s:Header><s:Body xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" ` +
		`xmlns:xsd="http://www.w3.org/2001/XMLSchema">`
	ewsFound = `<m:FindItemResponse xmlns:m="http://schemas.microsoft.com/exchange/services/2006/messages" ` +
		`xmlns:t="http://schemas.microsoft.com/exchange/services/2006/types"><m:ResponseMessages>` +
		`<m:FindItemResponseMessage ResponseClass="Success"><m:ResponseCode>NoError</m:ResponseCode>` +
		`<m:RootFolder IndexedPagingOffset="12" TotalItemsInView="%d" IncludesLastItemInRange="false"><t:Items>%s` +
		`</t:Items></m:RootFolder></m:FindItemResponseMessage></m:ResponseMessages></m:FindItemResponse>`
	ewsFoundItem = `<t:Message><t:ItemId Id="%s" ChangeKey="%s"/><t:Subject>%s</t:Subject>` +
		`<t:DateTimeReceived>%s</t:DateTimeReceived><t:Size>%d</t:Size><t:IsRead>%t</t:IsRead></t:Message>`
	ewsGot = `<m:GetItemResponse xmlns:m="http://schemas.microsoft.com/exchange/services/2006/messages" ` +
		`xmlns:t="http://schemas.microsoft.com/exchange/services/2006/types"><m:ResponseMessages>` +
		`<m:GetItemResponseMessage ResponseClass="Success"><m:ResponseCode>NoError</m:ResponseCode><m:Items>` +
		`<t:Message><t:ItemId Id="%s" ChangeKey="%s"/><t:Subject>%s</t:Subject><t:Sensitivity>Normal</t:Sensitivity>` +
		`<t:Body BodyType="Text">%s</t:Body><t:Size>%d</t:Size><t:DateTimeSent>%s</t:DateTimeSent>` +
		`<t:DateTimeCreated>%s</t:DateTimeCreated><t:ResponseObjects><t:ReplyToItem/><t:ReplyAllToItem/>` +
		`<t:ForwardItem/></t:ResponseObjects><t:HasAttachments>%t</t:HasAttachments><t:From><t:Mailbox>` +
		`<t:Name>%s</t:Name><t:EmailAddress>%s@example.com</t:EmailAddress><t:RoutingType>SMTP</t:RoutingType>` +
		`<t:MailboxType>Mailbox</t:MailboxType></t:Mailbox></t:From><t:IsRead>%t</t:IsRead></t:Message></m:Items>` +
		`</m:GetItemResponseMessage></m:ResponseMessages></m:GetItemResponse>`
	ewsClose = `</s:Body></s:Envelope>`
)

// mailItem is a mail in the inbox.
type mailItem struct {
	id, key, subject string
	came             time.Time
	size             int
	read             bool
}

// mailID is made as Exchange does it: of the mailbox, the folder, and a number of the item.
func mailID(r *rand.Rand, number uint64) string {
	b := append([]byte{0, 0, 0x32, 0x39}, "6c1f04a2-7d35-4b1e-9f0a-3d5e8c7b2a61"...)
	b = append(b, make([]byte, 10)...)
	for i := range 16 {
		b = append(b, byte(37*i+11))
	}
	b = append(b, 7, 0)
	b = binary.BigEndian.AppendUint64(b, r.Uint64()>>24)
	return base64.StdEncoding.EncodeToString(binary.LittleEndian.AppendUint64(append(b, make([]byte, 12)...), number))
}

func (t *dialogue) newMail(number int, came time.Time) mailItem {
	subject := strings.Trim(string(appendSentence(nil, t.Rand)), ".")
	key := append([]byte{9, 0, 0, 0, 0x16, 0, 0, 0}, "\x6b\xd7\x04\x91\x33\xe8\x4a\x10"...)
	return mailItem{mailID(t.Rand, uint64(number)), base64.StdEncoding.EncodeToString(
		binary.BigEndian.AppendUint64(key, t.Uint64()>>24)), subject, came, 2000 + t.IntN(60_000), false}
}

// mail looks for new mails, and reads one when there is one.
func (t *dialogue) mail(i int) (request, reply []byte) {
	for k := len(t.inbox); k < 12; k++ {
		t.inbox = append(t.inbox, t.newMail(4000-k, t.now.Add(-time.Duration(k)*17*time.Minute)))
		t.inbox[k].read = t.IntN(3) > 0
	}
	var ask, answer string
	if first := &t.inbox[0]; i%3 > 0 && !first.read {
		first.read = true
		ask = fmt.Sprintf(ewsGet, first.id, first.key)
		var text []byte
		for range 4 + t.IntN(12) {
			text = append(appendSentence(text, t.Rand), ' ')
		}
		from := words()[t.IntN(40)]
		answer = fmt.Sprintf(ewsGot, first.id, first.key, first.subject, text, first.size, second(first.came),
			second(first.came), t.IntN(4) == 0, strings.ToUpper(from[:1])+from[1:], from, true)
	} else {
		if i > 0 && t.IntN(2) == 0 {
			t.inbox = append([]mailItem{t.newMail(4000+i, t.now)}, t.inbox[:11]...)
		}
		ask = ewsFind
		var items strings.Builder
		for _, m := range t.inbox {
			fmt.Fprintf(&items, ewsFoundItem, m.id, m.key, m.subject, second(m.came), m.size, m.read)
		}
		answer = fmt.Sprintf(ewsFound, 871+i/3, items.String())
	}
	return message(ewsRequestHead, ewsRequestOpen+ask+ewsClose),
		message(fmt.Sprintf(ewsReplyHead, uuid(t.Rand), t.date()), ewsReplyOpen+answer+ewsClose)
}
