package mock_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/mock"
	"github.com/hhfr/hhfr/internal/wsdl"
	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xsd"
)

const described = `<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" xmlns:s="urn:s" targetNamespace="urn:s"
  xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/" xmlns:xs="http://www.w3.org/2001/XMLSchema">
<types><xs:schema targetNamespace="urn:s" elementFormDefault="qualified">
<xs:element name="get"><xs:complexType><xs:sequence><xs:element name="id" type="xs:int"/></xs:sequence>
</xs:complexType></xs:element>
<xs:element name="got"><xs:complexType><xs:sequence><xs:element name="name" type="xs:string" minOccurs="0"/>
</xs:sequence></xs:complexType></xs:element><xs:element name="tell" type="xs:string"/>
</xs:schema></types>
<message name="get"><part name="p" element="s:get"/></message>
<message name="got"><part name="p" element="s:got"/></message>
<message name="tell"><part name="p" element="s:tell"/></message><message name="none"/>
<portType name="t"><operation name="Get"><input message="s:get"/><output message="s:got"/></operation>
<operation name="Tell"><input message="s:tell"/></operation>
<operation name="Ping"><input message="s:none"/><output message="s:got"/></operation></portType>
<binding name="b" type="s:t"><soap:binding transport="http://schemas.xmlsoap.org/soap/http"/>
<operation name="Get"><input><soap:body use="literal"/></input><output><soap:body use="literal"/></output></operation>
<operation name="Tell"><input><soap:body use="literal"/></input></operation>
<operation name="Ping"><soap:operation soapAction="urn:ping"/><input><soap:body use="literal"/></input>
<output><soap:body use="literal"/></output></operation></binding>
</definitions>`

func service(t *testing.T) *wsdl.ServiceDescription {
	t.Helper()
	d, err := wsdl.Parse(t.Context(), []byte(described))
	require.NoError(t, err)
	require.Len(t, d.Operations, 3)
	for _, op := range d.Operations {
		require.Empty(t, op.Problems)
	}
	return d
}

func envelope(body string) string {
	return `<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body>` + body + `</e:Body></e:Envelope>`
}

// ask posts a request, and returns the status and the body of the reply.
func ask(t *testing.T, m http.Handler, action, text string) (int, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(text))
	r.Header.Set("SOAPAction", `"`+action+`"`)
	w := httptest.NewRecorder()
	m.ServeHTTP(w, r)
	reply, err := io.ReadAll(w.Result().Body)
	require.NoError(t, err)
	return w.Code, string(reply)
}

func TestAnswers(t *testing.T) {
	d := service(t)
	var log bytes.Buffer
	m, err := mock.New(d, mock.Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)

	status, first := ask(t, m, "", envelope(`<get xmlns="urn:s"><id>1</id></get>`))
	assert.Equal(t, http.StatusOK, status)
	root, err := xsd.ParseMessage("reply", []byte(first))
	require.NoError(t, err)
	assert.Empty(t, d.Check(root))
	assert.Contains(t, first, "name>")
	_, again := ask(t, m, "", envelope(`<get xmlns="urn:s"><id>2</id></get>`))
	assert.Equal(t, first, again)
	assert.Empty(t, log.String())

	status, reply := ask(t, m, "", envelope(`<get xmlns="urn:s"><id>one</id></get>`))
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, first, reply)
	assert.Contains(t, log.String(), `operation=Get where=get/id what="\"one\" is no int"`)

	status, reply = ask(t, m, "", envelope(`<tell xmlns="urn:s">x</tell>`))
	assert.Equal(t, http.StatusAccepted, status)
	assert.Empty(t, reply)
	status, reply = ask(t, m, "urn:ping", envelope(``))
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, reply, "got")

	for _, c := range []struct{ text, want string }{
		{envelope(`<other xmlns="urn:s"/>`), "no operation of the WSDL takes {urn:s}other"},
		{envelope(``), "no operation of the WSDL takes an empty Body"},
		{"<get/>", "get is no envelope"},
		{`<Envelope xmlns="urn:x"><Body/></Envelope>`, "{urn:x}Envelope is no envelope of SOAP 1.1 or 1.2"},
		{"no XML", "not well-formed"},
	} {
		status, reply = ask(t, m, "", c.text)
		assert.Equal(t, http.StatusInternalServerError, status)
		assert.Contains(t, reply, "Client</faultcode>")
		assert.Contains(t, reply, c.want)
	}
}

// An operation that has SOAP 1.1 alone is answered in that, and an answer in the charset of HTTP.
func TestVersionsAndCharsets(t *testing.T) {
	m, err := mock.New(service(t), mock.Config{Recorded: []mock.KnownReply{{
		Request: []byte(envelope(`<get xmlns="urn:s"><id>1</id></get>`)), Reply: []byte("ok"), Status: 200,
	}}, Match: []string{"id"}})
	require.NoError(t, err)
	of12 := strings.ReplaceAll(envelope(`<get xmlns="urn:s"><id>1</id></get>`), xmlns.SOAP11, xmlns.SOAP12)
	status, reply := ask(t, m, "", of12)
	assert.Equal(t, http.StatusInternalServerError, status)
	assert.Contains(t, reply, "VersionMismatch</faultcode><faultstring>Get is of SOAP 1.1 alone</faultstring>")
	of1 := envelope("<get xmlns='urn:s'><id>\xe9</id></get>")
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(of1))
	r.Header.Set("Content-Type", "text/xml; charset=ISO-8859-1")
	w := httptest.NewRecorder()
	m.ServeHTTP(w, r)
	assert.Contains(t, w.Body.String(), `no reply of Get with id="é" is recorded`)
}

// With a seed each request gets another sample, the same in each run.
func TestSeeds(t *testing.T) {
	run := func() (all []string) {
		m, err := mock.New(service(t), mock.Config{Seed: 7})
		require.NoError(t, err)
		for range 5 {
			_, reply := ask(t, m, "", envelope(`<get xmlns="urn:s"><id>1</id></get>`))
			all = append(all, reply)
		}
		return all
	}
	first := run()
	assert.Equal(t, first, run())
	assert.NotEqual(t, first[0], first[1])
}

func TestReplies(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	_, err := mock.New(service(t), mock.Config{Replies: dir})
	assert.ErrorContains(t, err, "has no OPERATION.xml and no OPERATION.json")
	write("Get.json", `{"name": "Ann"}`)
	write("Ping.xml", envelope(`<got xmlns="urn:s"><name>pong</name></got>`))
	m, err := mock.New(service(t), mock.Config{Replies: dir})
	require.NoError(t, err)
	_, reply := ask(t, m, "", envelope(`<get xmlns="urn:s"><id>1</id></get>`))
	assert.Contains(t, reply, "name>Ann<")
	_, reply = ask(t, m, "urn:ping", envelope(``))
	assert.Equal(t, envelope(`<got xmlns="urn:s"><name>pong</name></got>`), reply)
	write("Get.json", `{"Fault":{"faultcode":"{urn:s}Late","faultstring":"closed"}}`)
	write("Ping.xml", envelope(`<e:Fault><faultcode>e:Server</faultcode><faultstring>down</faultstring></e:Fault>`))
	m, err = mock.New(service(t), mock.Config{Replies: dir})
	require.NoError(t, err)
	status, reply := ask(t, m, "", envelope(`<get xmlns="urn:s"><id>1</id></get>`))
	assert.Equal(t, http.StatusInternalServerError, status)
	assert.Contains(t, reply, "<faultcode>n1:Late</faultcode><faultstring>closed</faultstring>")
	status, _ = ask(t, m, "urn:ping", envelope(``))
	assert.Equal(t, http.StatusInternalServerError, status)
	for name, c := range map[string]struct{ text, want string }{
		"None.json": {`{}`, "None.json: the WSDL has no operation None"},
		"Tell.json": {`{}`, "Tell.json: the operation Tell has no reply"},
		"Get.xml":   {envelope(``), "Get.xml: there is another reply of Get"},
		"Ping.json": {`{"nome":1}`, "Ping.json:1:9: got: nome is not expected: name is"},
	} {
		write(name, c.text)
		_, err := mock.New(service(t), mock.Config{Replies: dir})
		assert.ErrorContains(t, err, c.want)
		require.NoError(t, os.Remove(filepath.Join(dir, name)))
	}
}

// Replies that were recorded come in their order, from the first again, and those of a value only
// to requests that have it.
func TestRecorded(t *testing.T) {
	exchange := func(id, name string, status int) mock.KnownReply {
		return mock.KnownReply{
			Request: []byte(envelope(`<get xmlns="urn:s"><id>` + id + `</id></get>`)),
			Reply:   []byte(envelope(`<got xmlns="urn:s"><name>` + name + `</name></got>`)), Status: status,
		}
	}
	all := []mock.KnownReply{
		{Request: []byte("no XML"), Reply: []byte("none"), Status: 200}, exchange("1", "Ann", 200),
		exchange("2", "Bob", 500), exchange("1", "Cid", 200),
	}
	said := func(m *mock.Mock, ids ...string) (list []string) {
		for _, id := range ids {
			status, reply := ask(t, m, "", envelope(`<get xmlns="urn:s"><id>`+id+`</id></get>`))
			_, name, _ := strings.Cut(reply, "<name>")
			name, _, _ = strings.Cut(name, "<")
			list = append(list, strconv.Itoa(status)+" "+name)
		}
		return list
	}
	m, err := mock.New(service(t), mock.Config{Recorded: all})
	require.NoError(t, err)
	assert.Equal(t, []string{"200 Ann", "500 Bob", "200 Cid", "200 Ann"}, said(m, "7", "7", "7", "7"))
	status, reply := ask(t, m, "urn:ping", envelope(``))
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, reply, "got", "a sample")

	m, err = mock.New(service(t), mock.Config{Recorded: all, Match: []string{"id"}})
	require.NoError(t, err)
	assert.Equal(t, []string{"500 Bob", "200 Ann", "200 Cid", "200 Ann"}, said(m, "2", "1", "1", "01"))
	status, reply = ask(t, m, "", envelope(`<get xmlns="urn:s"><id>3</id></get>`))
	assert.Equal(t, http.StatusInternalServerError, status)
	assert.Contains(t, reply, "no reply of Get with id=\"3\" is recorded: there are [id=\"1\" id=\"2\"]")
	_, err = mock.New(service(t), mock.Config{Recorded: all, Match: []string{"id", "ed"}})
	assert.ErrorContains(t, err, "no request in it has ed, by which requests are matched")

	_, err = mock.New(service(t), mock.Config{Recorded: all[:1]})
	assert.ErrorContains(t, err, "of 1 exchanges none is of an operation of the WSDL")
}

func TestFailures(t *testing.T) {
	m, err := mock.New(service(t), mock.Config{Fail: 0.25, Seed: 1})
	require.NoError(t, err)
	faults := 0
	for range 200 {
		status, reply := ask(t, m, "", envelope(`<get xmlns="urn:s"><id>1</id></get>`))
		if status != http.StatusOK {
			faults++
			assert.Contains(t, reply, "Server</faultcode>")
		}
	}
	assert.InDelta(t, 50, faults, 25)
}

func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := mock.New(service(t), mock.Config{Latency: time.Second})
		require.NoError(t, err)
		began := time.Now()
		ask(t, m, "", envelope(`<get xmlns="urn:s"><id>1</id></get>`))
		assert.Equal(t, time.Second, time.Since(began))
	})
}
