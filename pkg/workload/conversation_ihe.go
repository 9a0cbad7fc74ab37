package workload

import (
	"fmt"
	"strings"
	"time"
)

const (
	iheRequestHead = `POST /xds/services/registry HTTP/1.1
Content-Type: application/soap+xml; action="urn:ihe:iti:2007:RegistryStoredQuery"; charset=UTF-8
Accept: */*
User-Agent: Apache-CXF/4.1.0
Cache-Control: no-cache
Pragma: no-cache
Host: registry.example.org:8080
Connection: keep-alive
`
	iheReplyHead = `HTTP/1.1 200 OK
Content-Type: application/soap+xml; charset=UTF-8
Date: %s
Server: Jetty(12.0.9)
`
	iheRequest = `<soap:Envelope xmlns:soap="http://www.w3.org/2003/05/soap-envelope"><soap:Header>` +
		`<Action xmlns="http://www.w3.org/2005/08/addressing" soap:mustUnderstand="true">` +
		`urn:ihe:iti:2007:RegistryStoredQuery</Action>` +
		`<MessageID xmlns="http://www.w3.org/2005/08/addressing">urn:uuid:%s</MessageID>` +
		`<To xmlns="http://www.w3.org/2005/08/addressing">` +
		`http://registry.example.org:8080/xds/services/registry</To>` +
		`<ReplyTo xmlns="http://www.w3.org/2005/08/addressing">` +
		`<Address>http://www.w3.org/2005/08/addressing/anonymous</Address></ReplyTo></soap:Header><soap:Body>` +
		`<ns4:AdhocQueryRequest xmlns:ns2="urn:oasis:names:tc:ebxml-regrep:xsd:rim:3.0" ` +
		`xmlns:ns3="urn:oasis:names:tc:ebxml-regrep:xsd:rs:3.0" ` +
		`xmlns:ns4="urn:oasis:names:tc:ebxml-regrep:xsd:query:3.0">` +
		`<ns4:ResponseOption returnComposedObjects="true" returnType="LeafClass"/>` +
		`<ns2:AdhocQuery id="urn:uuid:14d4debf-8f97-4251-9a74-a90016b0af0d">` +
		`<ns2:Slot name="$XDSDocumentEntryPatientId"><ns2:ValueList>` +
		`<ns2:Value>'%s^^^&amp;1.3.6.1.4.1.21367.13.20.1000&amp;ISO'</ns2:Value></ns2:ValueList></ns2:Slot>` +
		`<ns2:Slot name="$XDSDocumentEntryStatus"><ns2:ValueList>` +
		`<ns2:Value>('urn:oasis:names:tc:ebxml-regrep:StatusType:Approved')</ns2:Value></ns2:ValueList></ns2:Slot>` +
		`<ns2:Slot name="$XDSDocumentEntryCreationTimeFrom"><ns2:ValueList><ns2:Value>%s</ns2:Value>` +
		`</ns2:ValueList></ns2:Slot></ns2:AdhocQuery></ns4:AdhocQueryRequest></soap:Body></soap:Envelope>`
	iheReply = `<soap:Envelope xmlns:soap="http://www.w3.org/2003/05/soap-envelope"><soap:Header>` +
		`<Action xmlns="http://www.w3.org/2005/08/addressing">urn:ihe:iti:2007:RegistryStoredQueryResponse</Action>` +
		`<MessageID xmlns="http://www.w3.org/2005/08/addressing">urn:uuid:%s</MessageID>` +
		`<To xmlns="http://www.w3.org/2005/08/addressing">http://www.w3.org/2005/08/addressing/anonymous</To>` +
		`<RelatesTo xmlns="http://www.w3.org/2005/08/addressing">urn:uuid:%s</RelatesTo></soap:Header><soap:Body>` +
		`<ns4:AdhocQueryResponse xmlns:ns2="urn:oasis:names:tc:ebxml-regrep:xsd:rim:3.0" ` +
		`xmlns:ns3="urn:oasis:names:tc:ebxml-regrep:xsd:rs:3.0" ` +
		`xmlns:ns4="urn:oasis:names:tc:ebxml-regrep:xsd:query:3.0" ` +
		`status="urn:oasis:names:tc:ebxml-regrep:ResponseStatusType:Success"><ns2:RegistryObjectList>%s` +
		`</ns2:RegistryObjectList></ns4:AdhocQueryResponse></soap:Body></soap:Envelope>`
	iheDocument = `<ns2:ExtrinsicObject id="%s" mimeType="%s" ` +
		`objectType="urn:uuid:7edca82f-054d-47f2-a032-9b2a5b5186c1" ` +
		`status="urn:oasis:names:tc:ebxml-regrep:StatusType:Approved" lid="%s" isOpaque="false">%s` +
		`<ns2:Name><ns2:LocalizedString xml:lang="en-US" value="%s"/></ns2:Name><ns2:Description/>` +
		`<ns2:VersionInfo versionName="1"/>%s%s</ns2:ExtrinsicObject>`
	iheSlot           = `<ns2:Slot name="%s"><ns2:ValueList><ns2:Value>%s</ns2:Value></ns2:ValueList></ns2:Slot>`
	iheClassification = `<ns2:Classification id="urn:uuid:%s" ` +
		`objectType="urn:oasis:names:tc:ebxml-regrep:ObjectType:RegistryObject:Classification" ` +
		`classificationScheme="urn:uuid:%s" classifiedObject="%s" nodeRepresentation="%s">` +
		`<ns2:Slot name="codingScheme"><ns2:ValueList><ns2:Value>%s</ns2:Value></ns2:ValueList></ns2:Slot>` +
		`<ns2:Name><ns2:LocalizedString xml:lang="en-US" value="%s"/></ns2:Name></ns2:Classification>`
	iheIdentifier = `<ns2:ExternalIdentifier id="urn:uuid:%s" ` +
		`objectType="urn:oasis:names:tc:ebxml-regrep:ObjectType:RegistryObject:ExternalIdentifier" ` +
		`registryObject="%s" identificationScheme="urn:uuid:%s" value="%s">` +
		`<ns2:Name><ns2:LocalizedString value="%s"/></ns2:Name></ns2:ExternalIdentifier>`
)

// iheCodes are schemes with the codes that documents have of them: code, coding scheme, name.
var iheCodes = []struct {
	scheme string
	codes  [][3]string
}{
	{"41a5887f-8865-4c09-adf7-e362475b143a", [][3]string{
		{"34133-9", "2.16.840.1.113883.6.1", "Summary of episode note"},
		{"11502-2", "2.16.840.1.113883.6.1", "Laboratory report"},
		{"18748-4", "2.16.840.1.113883.6.1", "Imaging report"}}},
	{"f4f85eac-e6cb-4883-b524-f2705394840f", [][3]string{{"N", "2.16.840.1.113883.5.25", "Normal"},
		{"R", "2.16.840.1.113883.5.25", "Restricted"}}},
	{"a09d5840-386c-46f2-b5ad-9c3699a4309d", [][3]string{
		{"urn:ihe:pcc:xphr:2007", "1.3.6.1.4.1.19376.1.2.3", "Exchange of Personal Health Records"},
		{"urn:ihe:lab:xd-lab:2008", "1.3.6.1.4.1.19376.1.2.3", "Laboratory Report"}}},
	{"f33fb8ac-18af-42cc-ae0e-ed0b0bdb91e1", [][3]string{
		{"394777002", "2.16.840.1.113883.6.96", "Health encounter sites"},
		{"22232009", "2.16.840.1.113883.6.96", "Hospital"}}},
	{"cccf5598-8b07-4b77-a05e-ae952c785ead", [][3]string{
		{"394802001", "2.16.840.1.113883.6.96", "General medicine"},
		{"394579002", "2.16.840.1.113883.6.96", "Cardiology"}, {"394585009", "2.16.840.1.113883.6.96", "Obstetrics"}}},
	{"f0306f51-975f-434e-a61c-c59651d33983", [][3]string{
		{"34133-9", "2.16.840.1.113883.6.1", "Summary of episode note"},
		{"11502-2", "2.16.840.1.113883.6.1", "Laboratory report"}}},
}

// query asks a registry which documents there are of a patient.
func (t *dialogue) query(int) (request, reply []byte) {
	id, patient := uuid(t.Rand), fmt.Sprintf("IHERED-%d", 1000+t.IntN(9000))
	request = message(iheRequestHead, fmt.Sprintf(iheRequest, id, patient, t.now.AddDate(-1, 0, 0).Format("20060102")))
	var documents strings.Builder
	for range 1 + t.IntN(4) {
		documents.WriteString(t.document(patient + "^^^&amp;1.3.6.1.4.1.21367.13.20.1000&amp;ISO"))
	}
	return request, message(fmt.Sprintf(iheReplyHead, t.date()), fmt.Sprintf(iheReply, uuid(t.Rand), id,
		documents.String()))
}

// document describes one of them.
func (t *dialogue) document(patient string) string {
	id := "urn:uuid:" + uuid(t.Rand)
	made := t.now.Add(-time.Duration(t.IntN(400*24*3600)) * time.Second)
	born := time.Date(1930+t.IntN(90), time.Month(1+t.IntN(12)), 1+t.IntN(28), 0, 0, 0, 0, time.UTC)
	var slots, classes strings.Builder
	for _, s := range [][2]string{{"creationTime", made.Format("20060102150405")}, {"hash", t.hex(20)},
		{"languageCode", "en-US"}, {"repositoryUniqueId", "1.3.6.1.4.1.21367.13.40.7"},
		{"serviceStartTime", made.Add(-time.Hour).Format("200601021504")}, {"size", fmt.Sprint(3000 + t.IntN(400_000))},
		{"sourcePatientId", fmt.Sprintf("PID-%d^^^&amp;1.3.6.1.4.1.21367.13.20.3000&amp;ISO", t.IntN(100_000))},
		{"sourcePatientInfo", "PID-7|" + born.Format("20060102")}} {
		fmt.Fprintf(&slots, iheSlot, s[0], s[1])
	}
	title := ""
	for k, s := range iheCodes {
		code := s.codes[t.IntN(len(s.codes))]
		fmt.Fprintf(&classes, iheClassification, uuid(t.Rand), s.scheme, id, code[0], code[1], code[2])
		if k == 0 {
			title = code[2]
		}
	}
	identifiers := fmt.Sprintf(iheIdentifier, uuid(t.Rand), id, "58a6f841-87b3-4a3e-92fd-a8ffeff98427", patient,
		"XDSDocumentEntry.patientId") + fmt.Sprintf(iheIdentifier, uuid(t.Rand), id,
		"2e82c1f6-a085-4c72-9da3-8640a32e42ab", fmt.Sprintf("1.3.6.1.4.1.21367.13.40.7.%d.%d", made.Unix(),
			t.IntN(10_000)), "XDSDocumentEntry.uniqueId")
	return fmt.Sprintf(iheDocument, id, "text/xml", id, slots.String(), title, classes.String(), identifiers)
}
