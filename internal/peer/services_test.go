package peer_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/beevik/etree"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

func services(t testing.TB) []peer.Service {
	ranges, err := peer.ParseRanges(strings.NewReader("129.125.0.0/16\n"))
	require.NoError(t, err)
	return []peer.Service{
		peer.Concat(),
		peer.Sum(),
		peer.Records(),
		peer.GeoIP(ranges),
		peer.Blob(),
		peer.Ticker(clock.Scaled(200), time.Second),
	}
}

func envelope(v soap.Version, name, inner string) string {
	return `<e:Envelope xmlns:e="` + v.Namespace() + `"><e:Body>` +
		`<q:` + name + ` xmlns:q="` + peer.Namespace + `" xmlns="` + peer.Namespace + `">` + inner +
		`</q:` + name + `></e:Body></e:Envelope>`
}

// inner is what stands in the wrapper of a reply; a fault's reason with `fault: ` before it.
func inner(t testing.TB, name, reply string) string {
	parsed, err := soap.Parse([]byte(reply), soap.Limits{MaxBytes: 1 << 20})
	require.NoError(t, err, reply)
	if f, ok := parsed.Fault(); ok {
		return fmt.Sprintf("fault %d: %s", f.Code, f.Reason)
	}
	require.Len(t, parsed.Body, 1)
	assert.Equal(t, soap.Name{Space: peer.Namespace, Local: name + "Response"}, parsed.Body[0].Name)
	m := regexp.MustCompile(`(?s)<` + name + `Response[^>]*>(.*)</` + name + `Response>`).FindStringSubmatch(reply)
	require.NotNil(t, m, reply)
	return m[1]
}

// The same requests, in either version and by either way, have the same outcome.
func TestServices(t *testing.T) {
	s := start(t, services(t)...)
	sender := fmt.Sprintf("fault %d: ", soap.Client)
	for _, c := range []struct{ service, request, reply string }{
		{
			"concat", "<item>a </item><item> b&lt;</item><item/><item><![CDATA[<c>]]></item>",
			"<result>a  b&lt;&lt;c&gt;</result>",
		},
		{"concat", "", "<result></result>"},
		{"concat", "\n <item>a</item>\n <!-- no value --><item>x<!-- -->y</item>", "<result>axy</result>"},
		{"concat", `<item xmlns="">a</item><z:item xmlns:z="urn:hhfr:peer:1">b</z:item>`, "<result>ab</result>"},
		{"concat", "<item>&#13;</item>", "<result>&#13;</result>"},
		{"concat", "<item>a</item>text", sender + `text "text" between elements`},
		{"concat", "<other>a</other>", sender + "other is not expected here"},
		{"concat", "<item><b/></item>", sender + "item has a child element b"},
		{"concat", `<item xmlns="urn:other">a</item>`, sender + "{urn:other}item is not of urn:hhfr:peer:1"},
		{"concat", "<item>&unknown;</item>", sender + "line 1: malformed XML: invalid character entity &unknown;"},

		{"sum", "", "<result>0</result>"},
		{"sum", "<item>1</item><item>2.5</item>", "<result>3.5</result>"},
		{"sum", "<item> +1e0 </item><item>.5</item>", "<result>1.5</result>"},
		{"sum", "<item>0.1</item><item>0.2</item>", "<result>0.3</result>"},
		{"sum", "<item>16777216</item><item>1</item><item>1</item>", "<result>1.6777218E7</result>"},
		{"sum", "<item>9999999</item>", "<result>9999999</result>"},
		{"sum", "<item>10000000</item>", "<result>1.0E7</result>"},
		{"sum", "<item>0.001</item>", "<result>0.001</result>"},
		{"sum", "<item>-0.0009</item>", "<result>-9.0E-4</result>"},
		{"sum", "<item>-0</item>", "<result>0</result>"},
		{"sum", "<item>1e39</item>", "<result>INF</result>"},
		{"sum", "<item>-INF</item><item>1</item>", "<result>-INF</result>"},
		{"sum", "<item>INF</item><item>-INF</item>", "<result>NaN</result>"},
		{"sum", "<item>3e38</item><item>3e38</item><item>-3e38</item>", "<result>3.0E38</result>"},
		{"sum", "<item>1e-45</item>", "<result>1.0E-45</result>"},
		{"sum", "<item>0x1p3</item>", sender + `"0x1p3" is no float`},
		{"sum", "<item>inf</item>", sender + `"inf" is no float`},
		{"sum", "<item>1_0</item>", sender + `"1_0" is no float`},
		{"sum", "<item></item>", sender + `"" is no float`},
		{"sum", "<item>1,5</item>", sender + `"1,5" is no float`},

		{"records", "", ""},
		{"records", "<record><text> a&amp; </text><number> +07 </number><flag>1</flag></record><record>" +
			"<flag>false</flag><number>-2147483648</number><text/></record>",
			"<record><text> a&amp; </text><number>7</number><flag>true</flag></record><record><text></text>" +
				"<number>-2147483648</number><flag>false</flag></record>"},
		{
			"records", "<record><text>a</text><number>2147483648</number><flag>1</flag></record>",
			sender + `"2147483648" is no int`,
		},
		{
			"records", "<record><text>a</text><number>1</number><flag>yes</flag></record>",
			sender + `"yes" is no boolean`,
		},
		{"records", "<record><text>a</text><number>1</number></record>", sender + "flag is missing"},
		{"records", "<record><text>a</text><text>a</text></record>", sender + "text is not expected here"},
		{"records", "<record><other/></record>", sender + "other is not expected here"},

		{"geoip", "<address>129.125.102.100</address>", "<result>true</result>"},
		{"geoip", "<address> 129.126.0.0\n</address>", "<result>false</result>"},
		{"geoip", "<address>129.125.102</address>", sender + `"129.125.102" is no IPv4 address`},
		{"geoip", "<address>2001:db8::1</address>", sender + `"2001:db8::1" is no IPv4 address`},
		{"geoip", "", sender + "address is missing"},

		{"blob", "<size>0</size>", "<payload></payload>"},
		{"blob", "<size>4</size><seed>7</seed>", "<payload>" + blob(t, s, 4, 7) + "</payload>"},
		{"blob", "<size>-1</size>", sender + `size "-1" is not from 0 to 536870912`},
		{"blob", "<size>536870913</size>", sender + `size "536870913" is not from 0 to 536870912`},
		{"blob", "<size>1</size><seed>x</seed>", sender + `seed "x" is not from 0 to 2^64-1`},

		{"ticker", "<other/>", sender + "other is not expected here"},
	} {
		for _, version := range []soap.Version{soap.V11, soap.V12} {
			for _, hhfr := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %.30s %v hhfr=%v", c.service, c.request, version, hhfr), func(t *testing.T) {
					session := dial(t, s.URL("/"+c.service), config(t, hhfr))
					head, body, err := exchange(
						t.Context(),
						session,
						requestHead(t, "/"+c.service, version),
						strings.NewReader(envelope(version, c.service, c.request)),
					)
					require.NoError(t, err)
					assert.Equal(t, version, soap.Recognize([]byte(body)).Version)
					got := inner(t, c.service, body)
					assert.Equal(t, c.reply, got)
					status := 200
					if strings.HasPrefix(got, "fault") {
						status = soap.FaultStatus(version, soap.Client)
					}
					if head == "" {
						head = string(negotiate.DefaultReplyHead())
					}
					assert.Contains(t, head, fmt.Sprintf("HTTP/1.1 %d ", status))
					contentType, err := soap.ContentType(version, "")
					require.NoError(t, err)
					assert.Contains(t, head, "Content-Type: "+contentType)
				})
			}
		}
	}
}

func requestHead(t testing.TB, path string, v soap.Version) string {
	contentType, err := soap.ContentType(v, "")
	require.NoError(t, err)
	return "POST " + path + " HTTP/1.1\nContent-Type: " + contentType + "\n\n"
}

// blob asks for a payload, and checks its size.
func blob(t testing.TB, s *peer.Server, size, seed int) string {
	session := dial(t, s.URL(peer.BlobPath), config(t, true))
	_, body, err := exchange(
		t.Context(),
		session,
		"",
		strings.NewReader(envelope(soap.V11, "blob", fmt.Sprintf("<size>%d</size><seed>%d</seed>", size, seed))),
	)
	require.NoError(t, err)
	_, text, _ := strings.Cut(body, "<payload>")
	text, _, ok := strings.Cut(text, "</payload>")
	require.True(t, ok)
	octets, err := base64.StdEncoding.DecodeString(text)
	require.NoError(t, err)
	require.Len(t, octets, size)
	return text
}

func TestBlob(t *testing.T) {
	s := start(t, services(t)...)
	for _, size := range []int{1, 2, 3, 3*4096 - 1, 3 * 4096, 3*4096 + 1, 1 << 20} {
		assert.Equal(t, blob(t, s, size, 1), blob(t, s, size, 1), "the same seed")
		if size > 3 {
			assert.NotEqual(t, blob(t, s, size, 1), blob(t, s, size, 2), "another seed")
		}
	}
}

// What is wrong with an envelope is told by a fault.
func TestEnvelopes(t *testing.T) {
	s := start(t, services(t)...)
	const ok = `<concat xmlns="urn:hhfr:peer:1"><item>x</item></concat>`
	e11 := func(header, body string) string {
		return `<s:Envelope ` +
			`xmlns:s="http://schemas.xmlsoap.org/soap/envelope/">` + header + `<s:Body>` + body + `</s:Body>` +
			`</s:Envelope>`
	}
	for _, c := range []struct{ name, message, says string }{
		{"plain", e11("", ok), ""},
		{"mark", "\uFEFF" + e11("", ok), ""},
		{"declaration", "<?xml version='1.0' encoding='utf-8'?>\n<!-- c -->\n" + e11("", ok) + "\n<!-- c -->\n", ""},
		{"ascii", "<?xml version='1.0' encoding='US-ASCII'?>" + e11("", ok), ""},
		{
			"header",
			e11(`<s:Header><a:b xmlns:a="urn:a"><c/>text</a:b><a:b xmlns:a="urn:a" s:mustUnderstand="0"/>`+
				`</s:Header>`, ok),
			"",
		},
		{
			"header for others",
			e11(`<s:Header><a:b xmlns:a="urn:a" s:mustUnderstand="1" s:actor="urn:somebody"/></s:Header>`, ok), "",
		},
		{
			"must understand", e11(`<s:Header><a:b xmlns:a="urn:a" s:mustUnderstand="1"/></s:Header>`, ok),
			"header block {urn:a}b is not understood",
		},
		{
			"must understand, next",
			e11(`<s:Header><b s:mustUnderstand="1" s:actor="http://schemas.xmlsoap.org/soap/actor/next"/>`+
				`</s:Header>`, ok),
			"header block b is not understood",
		},
		{"empty", "", "the request is empty"},
		{"text", "hello", "the request is no XML"},
		{"html", "<html></html>", "html is no SOAP envelope"},
		{"no version", `<Envelope xmlns="urn:x"/>`, "neither SOAP 1.1 nor SOAP 1.2"},
		{"no body", `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"/>`, "the envelope has no Body"},
		{"empty body", e11("", ""), "the Body is empty"},
		{"stranger", e11("<x/>", ok), "x is neither Header nor Body"},
		{
			"other operation", e11("", `<x xmlns="urn:y"/>`),
			"there is no operation {urn:y}x here, only concat of urn:hhfr:peer:1",
		},
		{
			"prefix not declared", e11("", "<q:concat/>"),
			"there is no operation {q}concat here, only concat of urn:hhfr:peer:1",
		},
		{"two children", e11("", ok+ok), "there is concat where nothing more is expected"},
		{
			"behind the body", strings.Replace(e11("", ok), "</s:Envelope>", "<s:Body/></s:Envelope>", 1),
			"there is Body where nothing more is expected",
		},
		{"behind the envelope", e11("", ok) + "<x/>", "there is something behind the envelope"},
		{"text behind the envelope", e11("", ok) + "x", "there is something behind the envelope"},
		{"cut", strings.TrimSuffix(e11("", ok), "</s:Envelope>"), "line 1: malformed XML: unexpected EOF"},
		{"crossed", e11("", "<a><b></a></b>"), "there is no operation a here, only concat of urn:hhfr:peer:1"},
		{
			"crossed inside", e11("", `<concat xmlns="urn:hhfr:peer:1"><item></concat></item>`),
			"line 1: malformed XML: element <item> closed by </concat>",
		},
		{"dtd", "<!DOCTYPE x [<!ENTITY a 'b'>]>" + e11("", ok), "a document type declaration is not allowed"},
		{
			"other letters", "<?xml version='1.0' encoding='KOI8-R'?>" + e11("", ok),
			`the encoding "koi8-r" is not read, only UTF-8, UTF-16 and ISO-8859-1`,
		},
		{
			"deep", e11("", `<concat xmlns="urn:hhfr:peer:1">`+strings.Repeat("<item>", 70)),
			"item has a child element item",
		},
		{"deep header", e11("<s:Header>"+strings.Repeat("<a>", 70), ok), "elements nest deeper than 64"},
	} {
		t.Run(c.name, func(t *testing.T) {
			session := dial(t, s.URL(peer.ConcatPath), config(t, true))
			const head = "POST /concat HTTP/1.1\nContent-Type: text/xml\n\n" // the declaration counts
			_, body, err := exchange(t.Context(), session, head, strings.NewReader(c.message))
			require.NoError(t, err)
			if c.says == "" {
				assert.Equal(t, "<result>x</result>", inner(t, "concat", body))
				return
			}
			_, says, _ := strings.Cut(inner(t, "concat", body), ": ")
			assert.Equal(t, c.says, says)
		})
	}
}

func FuzzServices(f *testing.F) {
	list := services(f)
	for _, s := range list {
		f.Add(s.Example)
	}
	f.Add([]byte(envelope(soap.V12, "records", "<record><text>a</text>")))
	f.Fuzz(func(t *testing.T, message []byte) {
		for _, s := range list[:4] {
			d := etree.NewDocument()
			reply := serve(t, s, message).Body.Bytes()
			require.NoError(t, d.ReadFromBytes(reply), "%s", reply)
			assert.Equal(t, "Envelope", d.Root().Tag)
		}
	})
}

// FuzzRequestsAtOnce: requests that are whole at once have the same replies as those that are read
// as they come.
func FuzzRequestsAtOnce(f *testing.F) {
	list := services(f)[:4]
	for _, s := range list {
		f.Add(s.Example)
	}
	for _, inner := range []string{
		"<item>&#13;1.5 </item><!-- c --><item><![CDATA[2]]></item>", "<item>x</item>", "<item>1</item>x",
		`<item xmlns="">1</item><z:item xmlns:z="urn:hhfr:peer:1">2</z:item>`, "<record><flag>1</flag></record>",
		"<item>", "<item>&lt;</item>",
	} {
		f.Add([]byte(envelope(soap.V12, "sum", inner)))
		f.Add([]byte(envelope(soap.V11, "concat", inner)))
		f.Add([]byte(envelope(soap.V11, "records", inner)))
	}
	f.Add([]byte(strings.Replace(envelope(soap.V11, "sum", ""), "<e:Body>",
		`<e:Header><a:b xmlns:a="urn:a" e:mustUnderstand="1"/></e:Header><e:Body>`, 1)))
	f.Fuzz(func(t *testing.T, message []byte) {
		for _, s := range list {
			var replies [2]*httptest.ResponseRecorder
			for i, length := range []int64{int64(len(message)), -1} {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, s.Path, bytes.NewReader(message))
				r.ContentLength = length
				replies[i] = httptest.NewRecorder()
				s.Handler.ServeHTTP(replies[i], r)
			}
			require.Equal(t, replies[1].Code, replies[0].Code)
			require.Equal(t, replies[1].Body.String(), replies[0].Body.String())
			require.Equal(t, replies[1].Header(), replies[0].Header())
		}
	})
}

// get is the answer to a GET, by its status and body.
func get(t testing.TB, url string) (int, string) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

func TestDescriptions(t *testing.T) {
	s := start(t, services(t)...)
	for _, service := range services(t) {
		path := service.Path
		for _, form := range []string{path + "?wsdl", path + "?WSDL", path + ".wsdl"} {
			status, body := get(t, s.URL(form))
			require.Equal(t, 200, status, form)
			d := etree.NewDocument()
			require.NoError(t, d.ReadFromString(body))
			ports := d.FindElements("//service/port/address")
			require.Len(t, ports, 2)
			for _, p := range ports {
				assert.Equal(t, s.URL(path), p.SelectAttrValue("location", ""))
			}
			assert.NotContains(t, body, "{")
		}
		for _, form := range []string{path, path + "?", path + "?wsdl=1", path + "/x", path + ".xsd"} {
			status, _ := get(t, s.URL(form))
			assert.Equal(t, 404, status, form)
		}
		assert.NotNil(t, soap.Recognize(service.Example).Version)
	}
	for _, form := range []string{"/", "/echo", "/echo?wsdl", "/echo.wsdl", "/nobody?wsdl", "/nobody.wsdl"} {
		status, _ := get(t, s.URL(form))
		assert.Equal(t, 404, status, form)
	}
	_, body, err := exchange(
		t.Context(),
		dial(t, s.URL(peer.SumPath), config(t, true)),
		"GET /sum?wsdl HTTP/1.1\n\n",
		nil,
	)
	require.NoError(t, err)
	assert.Contains(t, body, fmt.Sprintf(`<soap11:address location=%q/>`, s.URL("/sum")), "as the client calls it")
}

// The five answers of the phones study, byte by byte from a socket: status line and body; of the
// description its beginning.
func TestGeoIPByRawSocket(t *testing.T) {
	s := start(t, peer.GeoIP(peer.DutchRanges()))
	post := func(body string) string {
		return fmt.Sprintf(
			"POST /geoip HTTP/1.1\r\nHost: phone\r\nContent-Type: text/xml; charset=utf-8\r\nSOAPAction: "+
				"\"\"\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
			len(body),
			body,
		)
	}
	ask := func(address string) string {
		return post(envelope(soap.V11, "geoip", "<address>"+address+"</address>"))
	}
	const declaration = `<?xml version="1.0" encoding="UTF-8"?>`
	said := func(result string) string {
		return declaration + "\n" + `<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/">` +
			`<soap:Body><geoipResponse xmlns="urn:hhfr:peer:1"><result>` + result + `</result></geoipResponse>` +
			`</soap:Body></soap:Envelope>`
	}
	fault := func(why string) string {
		return declaration + `<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"><soap:Body>` +
			`<soap:Fault><faultcode>soap:Client</faultcode><faultstring>` + why + `</faultstring></soap:Fault>` +
			`</soap:Body></soap:Envelope>`
	}
	const ok, notFound, failed, bad = "HTTP/1.1 200 OK", "HTTP/1.1 404 Not Found", "HTTP/1.1 500 Internal " +
		"Server Error", "HTTP/1.1 400 Bad Request"
	const here = "GET /geoip.wsdl HTTP/1.1\r\nHost: phone\r\n"
	for _, c := range []struct{ name, request, status, contentType, body string }{
		{
			"description", here + "Connection: close\r\n\r\n", ok, "text/xml; charset=utf-8",
			"*" + declaration + "\n<wsdl:definitions ",
		},
		{
			"description of old", "GET /geoip.wsdl HTTP/1.0\r\n\r\n", "HTTP/1.0 200 OK", "text/xml; charset=utf-8",
			"*" + declaration + "\n<wsdl:definitions ",
		},
		{
			"other GET", "GET /index.html HTTP/1.1\r\nHost: phone\r\nConnection: close\r\n\r\n", notFound,
			"text/plain; charset=utf-8", "nothing to get here\n",
		},
		{
			"GET of the service", "GET /geoip HTTP/1.1\r\nHost: phone\r\nConnection: close\r\n\r\n", notFound,
			"text/plain; charset=utf-8", "nothing to get here\n",
		},
		{"inside", ask("129.125.102.100"), ok, "text/xml; charset=utf-8", said("true")},
		{"outside", ask("192.0.2.1"), ok, "text/xml; charset=utf-8", said("false")},
		{"no address", ask("here"), failed, "text/xml; charset=utf-8", fault(`"here" is no IPv4 address`)},
		{"no SOAP", post("hello"), failed, "text/xml; charset=utf-8", fault("the request is no XML")},
		{
			"cut", post(envelope(soap.V11, "geoip", "")[:80]), failed, "text/xml; charset=utf-8",
			"*" + declaration + "<soap:Envelope ",
		},
		{"no HTTP", "HELLO\r\n\r\n", bad, "text/plain; charset=utf-8", "400 Bad Request"},
		{"bad version", "GET /geoip.wsdl HTTP/x\r\n\r\n", bad, "text/plain; charset=utf-8", "400 Bad Request"},
		{"bad field", here + "no field\r\n\r\n", bad, "text/plain; charset=utf-8", "400 Bad Request"},
		{
			"no host", "POST /geoip HTTP/1.1\r\nContent-Length: 0\r\n\r\n", bad + ": missing required Host header",
			"text/plain; charset=utf-8", "400 Bad Request: missing required Host header",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Addrs()["http"].String())
			require.NoError(t, err)
			defer conn.Close()
			_, err = io.WriteString(conn, c.request)
			require.NoError(t, err)
			octets, err := io.ReadAll(conn)
			require.NoError(t, err)
			head, body, ok := strings.Cut(string(octets), "\r\n\r\n")
			require.True(t, ok, "%q", octets)
			status, fields, _ := strings.Cut(head, "\r\n")
			assert.Equal(t, c.status, status)
			assert.Contains(t, "\r\n"+fields+"\r\n", "\r\nContent-Type: "+c.contentType+"\r\n")
			if beginning, ok := strings.CutPrefix(c.body, "*"); ok {
				assert.True(t, strings.HasPrefix(body, beginning), body)
				return
			}
			assert.Equal(t, c.body, body)
		})
	}
}

// Ticks come by themselves over a stream, each once, and as replies in plain SOAP, where their
// numbers grow.
func TestTicker(t *testing.T) {
	s := start(t, services(t)...)
	cfg := config(t, true)
	ticks := make(chan string, 100)
	cfg.Handler = func(_ context.Context, x *streamer.Exchange) {
		assert.True(t, x.OneWay())
		body, err := x.Message().ReadAll(1 << 16)
		assert.NoError(t, err)
		select {
		case ticks <- string(body):
		default:
		}
	}
	dial(t, s.URL(peer.TickerPath), cfg)
	form := regexp.MustCompile(`<number>(\d+)</number><time>[-0-9]{10}T[:.0-9]{12}Z</time>`)
	number := func(body string) int {
		m := form.FindStringSubmatch(body)
		require.NotNil(t, m, body)
		n, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		return n
	}
	seen := map[int]bool{} // each is handled in a goroutine of its own: they may overtake each other
	for range 3 {
		body := <-ticks
		assert.Contains(t, body, `<tick xmlns="urn:hhfr:peer:1">`)
		n := number(body)
		assert.Positive(t, n)
		assert.False(t, seen[n], "tick %d twice", n)
		seen[n] = true
	}
	last := 0
	plain := dial(t, s.URL(peer.TickerPath), config(t, false))
	for range 3 {
		_, body, err := exchange(t.Context(), plain, "", strings.NewReader(envelope(soap.V11, "ticker", "")))
		require.NoError(t, err)
		n := number(body)
		assert.Greater(t, n, last)
		last = n
	}

	// A session at another path gets none.
	cfg = config(t, true)
	cfg.Handler = func(context.Context, *streamer.Exchange) { t.Error("a tick") }
	other := dial(t, s.URL(peer.EchoPath), cfg)
	_, _, err := exchange(t.Context(), other, "", strings.NewReader("x"))
	require.NoError(t, err)
}

// Workloads' messages reach services that do not know them as faults, not as failures.
func TestForeignMessages(t *testing.T) {
	paths := shared.Messages(t)
	s := services(t)[0]
	for _, path := range paths[:min(len(paths), 100)] {
		assert.True(t, soap.Recognize(serve(t, s, shared.Read(t, path)).Body.Bytes()).Fault, path)
	}
}

// Answers describe the replies of services that HHFR Schema can describe, and what they say is so.
func TestRepliesAreDescribed(t *testing.T) {
	s := start(t, services(t)...)
	described := 0
	for _, service := range services(t) {
		cfg := config(t, true)
		session := dial(t, s.URL(service.Path), cfg)
		facts := session.Agreed().Facts
		described += strings.Count(facts.ReplyDescription, "urn:hhfr:schema:sha256:")
		if facts.ReplyDescription == "" {
			continue
		}
		_, body, err := exchange(t.Context(), session, "", strings.NewReader(string(service.Example)))
		require.NoError(t, err)
		drift, err := service.ReplySchema.Check([]byte(body))
		require.NoError(t, err)
		assert.Empty(t, drift, service.Path)
		kept, err := cfg.Store.Get(t.Context(), facts.ReplyDescription)
		require.NoError(t, err, "the initiator has what it was told")
		assert.Equal(t, service.ReplySchema.Compact(), kept.Value)
	}
	assert.Equal(t, 3, described, "concat, sum, geoip")
}
