package soap_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/soap"
)

func TestHeaderBlocks(t *testing.T) {
	for _, v := range []soap.Version{soap.V11, soap.V12} {
		in := &soap.Envelope{Version: v, Header: []soap.Element{
			{Name: name("urn:h", "A"), MustUnderstand: true, Role: "urn:me"}, {Name: name("urn:h", "B"), Role: soap.RoleNext11}, {Name: name("urn:h", "C"), Relay: v == soap.V12},
		}, Body: []soap.Element{{Name: name("urn:m", "Op")}}}
		data, err := soap.Build(in)
		require.NoError(t, err)
		out, err := soap.Parse(data, soap.Limits{})
		require.NoError(t, err)
		assert.Equal(t, in, out)
	}
	// Attributes of the other version say nothing.
	e, err := soap.Parse([]byte(open12+`<Header><a xmlns:o="http://schemas.xmlsoap.org/soap/envelope/" o:mustUnderstand="1" o:actor="urn:x"/></Header><Body/></Envelope>`), soap.Limits{})
	require.NoError(t, err)
	assert.False(t, e.Header[0].MustUnderstand)
	assert.Empty(t, e.Header[0].Role)
}

func TestNodeCheck(t *testing.T) {
	known := func(n soap.Name) bool { return n.Local == "Known" }
	for _, c := range []struct {
		what, role, local string
		v                 soap.Version
		node              soap.Node
		ok                bool
	}{
		{"for the ultimate receiver", "", "X", soap.V11, soap.Node{}, false},
		{"understood", "", "Known", soap.V11, soap.Node{Understands: known}, true},
		{"not this one", "", "X", soap.V11, soap.Node{Understands: known}, false},
		{"intermediary", "", "X", soap.V12, soap.Node{Intermediary: true}, true},
		{"next 1.1", soap.RoleNext11, "X", soap.V11, soap.Node{Intermediary: true}, false},
		{"next 1.2", soap.RoleNext12, "X", soap.V12, soap.Node{Intermediary: true}, false},
		{"next of the other version", soap.RoleNext12, "X", soap.V11, soap.Node{}, true},
		{"none", soap.RoleNone12, "X", soap.V12, soap.Node{}, true},
		{"ultimate by name", soap.RoleUltimate12, "X", soap.V12, soap.Node{}, false},
		{"another role", "urn:other", "X", soap.V12, soap.Node{}, true},
		{"a role of ours", "urn:ours", "X", soap.V12, soap.Node{Roles: []string{"urn:ours"}}, false},
	} {
		e := &soap.Envelope{Version: c.v, Header: []soap.Element{{Name: name("urn:h", c.local), MustUnderstand: true, Role: c.role}, {Name: name("urn:h", "free")}}}
		f, ok := c.node.Check(e)
		assert.Equal(t, c.ok, ok, c.what)
		if !ok {
			assert.Equal(t, soap.MustUnderstand, f.Code)
			assert.Contains(t, f.Reason, "{urn:h}"+c.local)
		}
	}
}

func TestFaultsInFull(t *testing.T) {
	for _, c := range []struct {
		v soap.Version
		f soap.Fault
	}{
		{soap.V11, soap.Fault{Code: soap.Client, Subcode: "Auth", Reason: "r", Actor: "urn:a"}},
		{soap.V11, soap.Fault{Subcode: "Gone", SubcodeSpace: "urn:c", Reason: "r"}},
		{soap.V12, soap.Fault{Code: soap.Client, Subcode: "Gone", SubcodeSpace: "urn:c", Reason: "r", Actor: "urn:a", Node: "urn:n"}},
		{soap.V12, soap.Fault{Code: soap.DataEncodingUnknown, Reason: "r"}},
		{soap.V12, soap.Fault{Code: soap.MustUnderstand, Reason: "r", NotUnderstood: []soap.Name{name("urn:h", "A"), name("", "B")}}},
		{soap.V12, soap.Fault{Code: soap.VersionMismatch, Reason: "r", Supported: []soap.Version{soap.V12, soap.V11}}},
	} {
		data, err := soap.BuildFault(c.v, c.f)
		require.NoError(t, err)
		e, err := soap.Parse(data, soap.Limits{})
		require.NoError(t, err, string(data))
		f, ok := e.Fault()
		require.True(t, ok)
		assert.Equal(t, c.f, f, string(data))
	}
}

var errTold = &soap.Error{Fault: &soap.Fault{Code: soap.Client, Reason: "told", Detail: []soap.Element{{Name: name("urn:d", "Why"), Text: "x"}}}}

// endpoint answers Op by OpResponse, and fails in several ways.
func endpoint() *soap.Handler {
	return &soap.Handler{
		Limits: soap.Limits{MaxBytes: 4096},
		Node:   soap.Node{Understands: func(n soap.Name) bool { return n == name("urn:h", "Known") }},
		Serve: func(_ context.Context, r *soap.Envelope, action string) (*soap.Envelope, error) {
			switch r.Body[0].Name.Local {
			case "Tell":
				return nil, errTold
			case "Fail":
				return nil, errors.New("secret of the house")
			case "OneWay":
				return nil, nil
			}
			return &soap.Envelope{Body: []soap.Element{{Name: name("urn:m", "OpResponse"), Text: action}}}, nil
		},
	}
}

func request(v soap.Version, local string, header ...soap.Element) *soap.Envelope {
	return &soap.Envelope{Version: v, Header: header, Body: []soap.Element{{Name: name("urn:m", local)}}}
}

func TestCallerAndHandler(t *testing.T) {
	server := httptest.NewServer(endpoint())
	defer server.Close()
	caller := &soap.Caller{HTTP: server.Client()}
	for _, v := range []soap.Version{soap.V11, soap.V12} {
		reply, err := caller.Call(t.Context(), server.URL, "urn:act", request(v, "Op", soap.Element{Name: name("urn:h", "Known"), MustUnderstand: true}))
		require.NoError(t, err)
		assert.Equal(t, v, reply.Version)
		assert.Equal(t, "urn:act", reply.Body[0].Text)

		require.NoError(t, caller.Send(t.Context(), server.URL, "", request(v, "OneWay")))
		_, err = caller.Call(t.Context(), server.URL, "", request(v, "OneWay"))
		require.ErrorIs(t, err, &soap.Error{Code: soap.NotSOAP})

		var e *soap.Error
		_, err = caller.Call(t.Context(), server.URL, "", request(v, "Tell"))
		require.ErrorAs(t, err, &e)
		assert.Equal(t, soap.Faulted, e.Code)
		assert.Equal(t, *errTold.Fault, *e.Fault)
		require.ErrorIs(t, caller.Send(t.Context(), server.URL, "", request(v, "Tell")), &soap.Error{Code: soap.Faulted})

		_, err = caller.Call(t.Context(), server.URL, "", request(v, "Fail"))
		require.ErrorAs(t, err, &e)
		assert.Equal(t, soap.Server, e.Fault.Code)
		assert.NotContains(t, err.Error(), "secret")

		_, err = caller.Call(t.Context(), server.URL, "", request(v, "Op", soap.Element{Name: name("urn:h", "Unknown"), MustUnderstand: true}))
		require.ErrorAs(t, err, &e)
		assert.Equal(t, soap.MustUnderstand, e.Fault.Code)
		if v == soap.V12 {
			assert.Equal(t, []soap.Name{name("urn:h", "Unknown")}, e.Fault.NotUnderstood)
		}
	}
}

func TestHandlerRefuses(t *testing.T) {
	server := httptest.NewServer(endpoint())
	defer server.Close()
	const op11, op12 = open11 + `<s:Body><Op/></s:Body></s:Envelope>`, open12 + `<Body><Op/></Body></Envelope>`
	mismatch := `<Envelope xmlns="urn:soap:2.0"><Body/></Envelope>`
	for _, c := range []struct {
		what, method, contentType, coding, body string
		status                                  int
		has                                     string
	}{
		{"method", "PUT", "text/xml", "", op11, 405, "posted"},
		{"GET", "GET", "", "", "", 405, "posted"},
		{"type", "POST", "text/html", "", op11, 415, "SOAP"},
		{"no type", "POST", "", "", op11, 415, "SOAP"},
		{"attachments", "POST", `multipart/related; start-info="text/xml"; boundary=b`, "", op11, 415, "SOAP"},
		{"coding", "POST", "text/xml", "gzip", op11, 415, "SOAP"},
		{"charset", "POST", "text/xml; charset=iso-8859-1", "", op11, 500, "iso-8859-1"},
		{"version mismatch 1.1", "POST", "text/xml", "", mismatch, 500, "VersionMismatch"},
		{"version mismatch 1.2", "POST", "application/soap+xml", "", mismatch, 500, "SupportedEnvelope"},
		{"DTD", "POST", "text/xml", "", `<!DOCTYPE a>` + op11, 500, "document type"},
		{"DTD 1.2", "POST", "application/soap+xml", "", `<!DOCTYPE a>` + op12, 400, "Sender"},
		{"too long", "POST", "text/xml", "", op11 + strings.Repeat(" ", 5000), 500, "limit"},
		{"too deep", "POST", "text/xml", "", open11 + "<s:Body>" + strings.Repeat("<a>", 40), 500, "Client"},
		{"no XML", "POST", "text/xml", "", "hello", 500, "Client"},
		{"answered in the envelope's version", "POST", "text/xml", "", op12, 200, "2003/05/soap-envelope"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, server.URL, strings.NewReader(c.body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", c.contentType)
		if c.coding != "" {
			req.Header.Set("Content-Encoding", c.coding)
		}
		resp, err := server.Client().Do(req)
		require.NoError(t, err)
		got, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, c.status, resp.StatusCode, c.what)
		assert.Contains(t, string(got), c.has, c.what)
	}
}

func TestCallerMeetsOthers(t *testing.T) {
	ok := open11 + `<s:Body><a/></s:Body></s:Envelope>`
	for what, c := range map[string]struct {
		serve http.HandlerFunc
		code  soap.Code
	}{
		"404":              {http.NotFound, soap.NotSOAP},
		"HTML":             {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html/>") }, soap.NotSOAP},
		"500 without":      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, soap.NotSOAP},
		"500 with a reply": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500); _, _ = io.WriteString(w, ok) }, soap.NotSOAP},
		"see other":        {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x", http.StatusSeeOther) }, soap.NotSOAP},
		"endless loop":     {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x", http.StatusTemporaryRedirect) }, soap.NotSOAP},
		"hangs up":         {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, soap.Unanswered},
		"cut": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "99")
			w.WriteHeader(200)
		}, soap.Unanswered},
		"malformed": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/xml")
			_, _ = io.WriteString(w, "<a>")
		}, soap.Malformed},
	} {
		server := httptest.NewServer(c.serve)
		_, err := (&soap.Caller{HTTP: server.Client()}).Call(t.Context(), server.URL+"/?key=hidden", "", request(soap.V11, "Op"))
		require.ErrorIs(t, err, &soap.Error{Code: c.code}, what)
		assert.NotContains(t, err.Error(), "hidden")
		server.Close()
	}
	_, err := new(soap.Caller).Call(t.Context(), "::", "", request(soap.V11, "Op"))
	require.ErrorIs(t, err, &soap.Error{Code: soap.BadField})
	_, err = new(soap.Caller).Call(t.Context(), "http://x", "a\nb", request(soap.V11, "Op"))
	require.ErrorIs(t, err, &soap.Error{Code: soap.BadField})
}
