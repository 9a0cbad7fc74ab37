package main

import (
	"crypto/md5" //nolint:gosec // what HTTP Digest is made of
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// TestCallOverTLS: the description comes over the TLS and with the login of the call, which no
// other origin gets, not even one that the description imports from.
func TestCallOverTLS(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Empty(t, r.Header.Get("Authorization"))
		_, _ = w.Write([]byte(`<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:other">` +
			`<xs:element name="get" type="xs:int"/></xs:schema>`))
	}))
	defer other.Close()
	asked := 0
	var location string
	service := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, ok := r.BasicAuth()
		login := ok && user == "ann" && password == "secret" || r.Header.Get("Authorization") == "Bearer secret"
		if !login {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		asked++
		if r.Method == http.MethodGet {
			_, _ = w.Write([]byte(strings.NewReplacer("LOCATION", location, "OTHER", other.URL).Replace(importing)))
			return
		}
		w.Header().Set("Content-Type", "text/xml; charset=utf-8")
		_, _ = w.Write([]byte(`<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body>` +
			`<get xmlns="urn:other">5</get></e:Body></e:Envelope>`))
	}))
	authority := shared.NewAuthority(t)
	service.TLS = &tls.Config{Certificates: []tls.Certificate{authority.Issue(time.Hour, "127.0.0.1")}}
	service.StartTLS()
	defer service.Close()
	location = service.URL + "/get"
	dir := t.TempDir()
	secret := filepath.Join(dir, "password")
	require.NoError(t, os.WriteFile(secret, []byte("secret\n"), 0o600))
	call := []string{
		"call", service.URL + "/?wsdl", "Get", `{"$":5}`, "--fetch", "--cacert", authority.WriteFile(dir, "ca.pem"),
	}
	args := append(slices.Clone(call), "--user", "ann", "--password-file", secret)

	code, _, stderr := do(t, call[:5]...)
	assert.NotZero(t, code)
	assert.Contains(t, stderr, "certificate")
	token := append(call, "--token-file", secret)
	for _, args := range [][]string{args, append(slices.Clone(args), "--plain"), token, append(token, "--plain")} {
		asked = 0
		code, printed, stderr := do(t, args...)
		require.Zero(t, code, stderr)
		assert.Equal(t, "5\n", printed)
		assert.Equal(t, 2, asked, "for the description, and the call")
	}
	require.NoError(t, os.WriteFile(secret, []byte("wrong\n"), 0o600))
	code, _, stderr = do(t, args...)
	assert.Equal(t, 1, code)
	assert.Contains(t, stderr, "HTTP status 401")
}

// TestCallDigest: the first call is refused for a challenge, which it and the next answer.
func TestCallDigest(t *testing.T) {
	var said []int
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hex := func(text string) string { return fmt.Sprintf("%x", md5.Sum([]byte(text))) }
		given := map[string]string{}
		param := regexp.MustCompile(`(\w+)="?([^",]+)`)
		for _, p := range param.FindAllStringSubmatch(r.Header.Get("Authorization"), -1) {
			given[p[1]] = p[2]
		}
		status := http.StatusOK
		want := hex(hex("ann:r:secret") + ":n1:" + given["nc"] + ":" + given["cnonce"] + ":auth:" +
			hex("POST:/get?a=b"))
		if given["nonce"] != "n1" || given["response"] != want {
			w.Header().Set("WWW-Authenticate", `Digest realm="r", nonce="n1", qop="auth"`)
			status = http.StatusUnauthorized
		}
		said = append(said, status)
		w.Header().Set("Content-Type", "text/xml")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body>` +
			`<get xmlns="urn:other">5</get></e:Body></e:Envelope>`))
	}))
	defer service.Close()
	file := withItsTypes(t, service.URL+"/get?a=b")
	for _, more := range []string{"--plain", "--timeout=1m"} {
		for password, want := range map[string][]int{"secret": {401, 200, 200}, "wrong": {401, 401, 401, 401}} {
			said = nil
			t.Setenv("HHFR_PASSWORD", password)
			code, printed, stderr := doWith(t, `{"$":5}{"$":6}`,
				"call", file, "Get", "-", "--user", "ann", "--digest", more)
			assert.Equal(t, want, said, password)
			assert.Equal(t, "5\n5\n", printed)
			if password == "secret" {
				assert.Zero(t, code, stderr)
				continue
			}
			assert.Equal(t, 1, code)
			assert.Contains(t, stderr, "HTTP status 401")
		}
	}
}

// withItsTypes is a file with the description without its import, of a service somewhere.
func withItsTypes(t *testing.T, location string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "get.wsdl")
	text := strings.NewReplacer("LOCATION", location, ` schemaLocation="OTHER/types.xsd"`, "").Replace(importing)
	text = strings.Replace(text, "<types>", `<types><xs:schema targetNamespace="urn:other" `+
		`xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="get" type="xs:int"/></xs:schema>`, 1)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// TestRepliesThatAreNone: what a service may answer in place of a reply has exit code 1, and says
// what it is.
func TestRepliesThatAreNone(t *testing.T) {
	const soap11 = `xmlns="http://schemas.xmlsoap.org/soap/envelope/"`
	var status int
	var contentType, reply string
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		if status == http.StatusFound {
			w.Header().Set("Location", "http://other.example/")
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(reply))
	}))
	defer service.Close()
	file := withItsTypes(t, service.URL)
	for name, c := range map[string]struct {
		status             int
		contentType, reply string
		code               int
		printed, said      string
	}{
		"moved":      {302, "", "", 1, "null\n", "HTTP status 302 Found, to http://other.example/: --to calls there"},
		"empty":      {200, "", "", 1, "null\n", "the reply is empty: HTTP status 200 OK"},
		"no content": {204, "", "", 1, "null\n", "the reply is empty: HTTP status 204 No Content"},
		"other": {200, "text/xml", `<Envelope xmlns="urn:x"><Body/></Envelope>`, 1, "",
			"{urn:x}Envelope is no envelope"},
		"no Body": {200, "text/xml", `<Envelope ` + soap11 + `><Header/></Envelope>`, 1, "",
			"the envelope has no Body"},
		"not as described": {200, "text/xml; charset=ISO-8859-1",
			`<Envelope ` + soap11 + `><Body><get xmlns="urn:other">f` + "\xfc" + `nf</get></Body></Envelope>`, 0,
			"\"f\u00fcnf\"\n", "the reply is not as described: get: "},
		"attached": {200, "multipart/related; boundary=b",
			"--b\r\nContent-Type: text/xml\r\n\r\n<Envelope " + soap11 + `><Body>` +
				"<get xmlns='urn:other'>5</get></Body></Envelope>" +
				"\r\n--b\r\nContent-ID: <a>\r\n\r\nx\r\n--b--\r\n", 0, "5\n", ""},
	} {
		for _, more := range [][]string{nil, {"--plain"}} {
			status, contentType, reply = c.status, c.contentType, c.reply
			code, printed, stderr := do(t, append([]string{"call", file, "Get", `{"$":5}`}, more...)...)
			assert.Equal(t, c.code, code, "%s %v", name, more)
			assert.Equal(t, c.printed, printed, "%s %v", name, more)
			assert.Contains(t, stderr, c.said, "%s %v", name, more)
		}
	}
}

// TestRepliesThatAreCut: what goes wrong after a request was written leaves its fate unknown.
func TestRepliesThatAreCut(t *testing.T) {
	for name, c := range map[string]struct{ contentType, reply, flag, said string }{
		"Fast Infoset":     {"application/fastinfoset", "\xe0\x00\x00\x01\x00", "--fast-infoset=at-once", "EOF"},
		"XML":              {"text/xml", "<Envelope", "--plain", "unexpected EOF"},
		"the head":         {"", "", "--plain", "EOF"},
		"XML, by a client": {"text/xml", "<Envelope", "--quiet", "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			service := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if c.reply == "" {
					panic(http.ErrAbortHandler)
				}
				w.Header().Set("Content-Type", c.contentType)
				w.Header().Set("Content-Length", "1000")
				_, _ = io.WriteString(w, c.reply)
			}))
			service.Config.ErrorLog = log.New(io.Discard, "", 0)
			service.Start()
			defer service.Close()
			file := withItsTypes(t, service.URL)
			code, printed, stderr := do(t, "call", file, "Get", `{"$":5}`, c.flag)
			assert.Equal(t, 5, code, stderr)
			assert.Empty(t, printed)
			assert.Contains(t, stderr, c.said)
			service.Close()
			code, _, stderr = do(t, "call", file, "Get", `{"$":5}`, "--plain")
			assert.Equal(t, 3, code, stderr)
		})
	}
}

// TestCertificateIsWanted: in TLS 1.3 the client hears so after it wrote the request, unless the
// end of the connection is there before it has read that.
func TestCertificateIsWanted(t *testing.T) {
	service := httptest.NewUnstartedServer(http.NotFoundHandler())
	service.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS13}
	service.Config.ErrorLog = log.New(io.Discard, "", 0)
	service.StartTLS()
	defer service.Close()
	file := withItsTypes(t, service.URL)
	var code int
	var said string
	for range 50 {
		code, _, said = do(t, "call", file, "Get", `{"$":5}`, "--plain", "--insecure-skip-verify")
		if strings.Contains(said, "--cert FILE and --key FILE show one") {
			break
		}
	}
	assert.Equal(t, 3, code, said)
	assert.Contains(t, said, "--cert FILE and --key FILE show one")
}

// TestFastInfosetThatCannotBeRead: such a reply is whole, and its request was handled.
func TestFastInfosetThatCannotBeRead(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/fastinfoset")
		_, _ = io.WriteString(w, "\xe0\x00\x00\x01\x00\x38")
	}))
	defer service.Close()
	code, printed, stderr := do(t, "call", withItsTypes(t, service.URL), "Get", `{"$":5}`, "--fast-infoset=at-once")
	assert.Equal(t, 5, code, stderr)
	assert.Empty(t, printed)
	assert.NotContains(t, stderr, "is the server running")
}

// importing is a description whose types are of another origin.
const importing = `<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" xmlns:o="urn:other" xmlns:s="urn:s"
  targetNamespace="urn:s" xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/"><types>
<xs:schema targetNamespace="urn:s" xmlns:xs="http://www.w3.org/2001/XMLSchema">
<xs:import namespace="urn:other" schemaLocation="OTHER/types.xsd"/></xs:schema></types>
<message name="m"><part name="p" element="o:get"/></message>
<portType name="t"><operation name="Get"><input message="s:m"/><output message="s:m"/></operation></portType>
<binding name="b" type="s:t"><soap:binding transport="http://schemas.xmlsoap.org/soap/http"/><operation name="Get">
<input><soap:body use="literal"/></input><output><soap:body use="literal"/></output></operation></binding>
<service name="v"><port name="p" binding="s:b"><soap:address location="LOCATION"/></port></service></definitions>`
