package hhfr_test

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr"
	"github.com/hhfr/hhfr/pkg/soap"
)

type division struct {
	XMLName  xml.Name `xml:"urn:example:math divide"`
	Dividend int64    `xml:"urn:example:math dividend"`
	Divisor  int64    `xml:"urn:example:math divisor"`
	Note     string   `xml:"urn:example:math note,omitempty"`
}

type quotient struct {
	XMLName  xml.Name `xml:"urn:example:math divideResponse"`
	Quotient int64    `xml:"urn:example:math quotient"`
	Note     string   `xml:"urn:example:math note,omitempty"`
}

var errSecret = errors.New("secret")

func divide(_ context.Context, d *division) (*quotient, error) {
	switch d.Divisor {
	case 0:
		dividend := soap.Element{Name: soap.Name{Space: "urn:example:math", Local: "dividend"}, Text: "7"}
		return nil, &soap.Fault{
			Code: soap.Client, Subcode: "Math", Reason: "division by zero", Detail: []soap.Element{dividend},
		}
	case -1:
		return nil, errSecret
	case -2:
		return nil, nil
	}
	return &quotient{Quotient: d.Dividend / d.Divisor, Note: d.Note}, nil
}

func dialed(t testing.TB, url string) *hhfr.Client {
	t.Helper()
	c, err := hhfr.Dial(t.Context(), url, config(t))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestInvoke(t *testing.T) {
	for _, by := range ways {
		for _, version := range []soap.Version{soap.None, soap.V11, soap.V12} {
			t.Run(string(by)+" "+version.String(), func(t *testing.T) {
				op, err := hhfr.NewOperation[division, quotient]("urn:example:math:divide", version)
				require.NoError(t, err)
				seen := ""
				handler := op.Handler(divide)
				client := dialed(t, serve(t, by, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					seen = r.Header.Get("Content-Type") + " " + r.Header.Get("SOAPAction")
					handler.ServeHTTP(w, r)
				})))
				for i := range int64(3) {
					req := &division{Dividend: 42 + i, Divisor: 2, Note: "é<&>"}
					res, err := hhfr.Invoke(t.Context(), client, op, req)
					require.NoError(t, err)
					assert.Equal(t, 21+i/2, res.Quotient)
					assert.Equal(t, "é<&>", res.Note)
				}
				assert.Contains(t, seen, "urn:example:math:divide")

				_, err = hhfr.Invoke(t.Context(), client, op, &division{Dividend: 7})
				var e *hhfr.Error
				require.ErrorAs(t, err, &e)
				assert.Equal(t, hhfr.Error{Code: hhfr.Faulted, Remote: true, Sent: true, Err: e.Err}, *e)
				var fault *soap.Fault
				require.ErrorAs(t, err, &fault)
				assert.Equal(t, soap.Client, fault.Code)
				assert.Equal(t, "division by zero", fault.Reason)
				assert.Equal(t, "hhfr: fault: Client.Math: division by zero", err.Error())
				require.Len(t, fault.Detail, 1)
				assert.Equal(t, "7", fault.Detail[0].Text)

				_, err = hhfr.Invoke(t.Context(), client, op, &division{Divisor: -1})
				require.ErrorAs(t, err, &fault)
				assert.Equal(t, "hhfr: fault: Server: the service failed", err.Error(), "the cause stays there")

				_, err = hhfr.Invoke(t.Context(), client, op, &division{Divisor: -2})
				require.ErrorIs(t, err, &hhfr.Error{Code: hhfr.Malformed})
				assert.Contains(t, err.Error(), "status 202")
				req, err := op.Request(&division{Divisor: -2})
				require.NoError(t, err)
				require.NoError(t, client.Send(t.Context(), req))
			})
		}
	}
}

// A Binding is an Operation's half, without an envelope.
func TestBind(t *testing.T) {
	b, err := hhfr.Bind[division]()
	require.NoError(t, err)
	content, err := b.Append([]byte("<!-- -->"), &division{Dividend: 1, Divisor: 2})
	require.NoError(t, err)
	assert.Equal(t, `<!-- --><divide xmlns="urn:example:math"><dividend>1</dividend><divisor>2</divisor></divide>`,
		string(content))
	got := division{Note: "is gone"}
	require.NoError(t, b.Read(content, &got))
	assert.Equal(t, division{got.XMLName, 1, 2, ""}, got)
	for _, tc := range []struct{ text, want string }{
		{"", "hhfr: malformed: line 1, column 1 (offset 0): the document ends too early"},
		{string(content) + "<a/>", "hhfr: malformed: line 1, column 93 (offset 92): a second root element"},
		{`<divide xmlns="urn:example:math"><divisor>x</divisor></divide>`,
			`hhfr: malformed: divide/divisor: "x" is no integer of 64 bits`},
	} {
		err := b.Read([]byte(tc.text), &got)
		require.ErrorIs(t, err, &hhfr.Error{Code: hhfr.Malformed})
		assert.EqualError(t, err, tc.want)
	}
	require.ErrorIs(t, b.Read(content, nil), &hhfr.Error{Code: hhfr.Invalid})
}

func TestInvokeConcurrently(t *testing.T) {
	op, err := hhfr.NewOperation[division, quotient]("", soap.V11)
	require.NoError(t, err)
	client := dialed(t, serve(t, stream, op.Handler(divide)))
	var all sync.WaitGroup
	for i := range int64(16) {
		all.Go(func() {
			for j := range int64(50) {
				note := strings.Repeat("x", int(i+j))
				res, err := hhfr.Invoke(t.Context(), client, op, &division{Dividend: i * j, Divisor: 1, Note: note})
				if assert.NoError(t, err) {
					assert.Equal(t, i*j, res.Quotient)
					assert.Equal(t, note, res.Note)
				}
			}
		})
	}
	all.Wait()
}

func TestInvokeRefuses(t *testing.T) {
	_, err := hhfr.NewOperation[division, map[string]int]("", soap.V11)
	require.ErrorIs(t, err, &hhfr.Error{Code: hhfr.Invalid})
	_, err = hhfr.NewOperation[division, quotient]("a\"b", soap.V12)
	require.ErrorIs(t, err, &hhfr.Error{Code: hhfr.Invalid})

	op, err := hhfr.NewOperation[division, quotient]("", soap.V11)
	require.NoError(t, err)
	for _, tc := range []struct {
		status      int
		reply, want string
	}{
		{200, "", "hhfr: malformed: line 1, column 1 (offset 0): the document ends too early"},
		{404, "no such page", "hhfr: malformed: a reply of status 404: "},
		{200, "<a/>", "a is no SOAP envelope"},
		{200, `<Envelope xmlns="urn:x"/>`, "neither SOAP 1.1 nor SOAP 1.2"},
		{200, in11(""), "the Body is empty"},
		{200, in11("<x/>"), "divideResponse: found x, expected {urn:example:math}divideResponse"},
		{200, in11(`<divideResponse xmlns="urn:example:math"><quotient>x</quotient></divideResponse>`),
			`divideResponse/quotient: "x" is no integer of 64 bits`},
		{200, in11(`<divideResponse xmlns="urn:example:math"/><x/>`), "there is x where nothing more is expected"},
		{200, in11(`<divideResponse xmlns="urn:example:math"/>`) + "<x/>", "a second root element"},
	} {
		_, err := op.Result(&hhfr.Reply{Status: tc.status, Body: hhfr.Body(tc.reply)})
		var e *hhfr.Error
		require.ErrorAs(t, err, &e, "%s", tc.reply)
		assert.Equal(t, hhfr.Error{Code: hhfr.Malformed, Remote: true, Sent: true, Err: e.Err}, *e)
		assert.Contains(t, err.Error(), tc.want)
	}
	var none *hhfr.Operation[division, quotient]
	_, err = hhfr.Invoke(t.Context(), nil, none, &division{})
	require.ErrorIs(t, err, &hhfr.Error{Code: hhfr.Invalid})
	_, err = hhfr.Invoke(t.Context(), nil, op, &division{})
	require.ErrorIs(t, err, &hhfr.Error{Code: hhfr.Invalid})
	_, err = none.Result(&hhfr.Reply{Body: hhfr.Body("<a/>")})
	require.ErrorIs(t, err, &hhfr.Error{Code: hhfr.Invalid})
	for _, handler := range []http.Handler{op.Handler(nil), none.Handler(divide)} {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil))
		assert.Contains(t, answer.Body.String(), "the service failed")
	}
	_, err = new(hhfr.Binding[division]).Append(nil, &division{})
	require.ErrorIs(t, err, &hhfr.Error{Code: hhfr.Invalid})
	require.ErrorIs(t, new(hhfr.Binding[division]).Read(nil, &division{}), &hhfr.Error{Code: hhfr.Invalid})
	_, err = op.Result(nil)
	require.ErrorIs(t, err, &hhfr.Error{Code: hhfr.Malformed})
	_, err = op.Request(nil)
	require.ErrorIs(t, err, &hhfr.Error{Code: hhfr.Invalid})
	_, err = op.Request(&division{Note: "\x01"})
	require.ErrorIs(t, err, &hhfr.Error{Code: hhfr.Invalid})
	assert.Contains(t, err.Error(), `divide/note: "\x01" cannot stand in XML`)
}

// in11 is an envelope of SOAP 1.1.
func in11(body string) string {
	return `<s:Envelope xmlns:s="` + soap.V11.Namespace() + `"><s:Body>` + body + `</s:Body></s:Envelope>`
}

// What a Handler does not take it answers by a fault that says so.
func TestHandlerOfAnOperation(t *testing.T) {
	op, err := hhfr.NewOperation[division, quotient]("", soap.V11)
	require.NoError(t, err)
	url := serve(t, stream, op.Handler(divide))
	const fine = `<divide xmlns="urn:example:math"><dividend>6</dividend><divisor>3</divisor></divide>`
	mandatory := strings.Replace(in11(fine), "<s:Body>", `<s:Header><x:b xmlns:x="urn:x" s:mustUnderstand="1"/>`+
		`</s:Header><s:Body>`, 1)
	for _, tc := range []struct {
		body   string
		status int
		want   string
	}{
		{in11(fine), 200, "<quotient>2</quotient>"},
		{strings.ReplaceAll(in11(fine), soap.V11.Namespace(), soap.V12.Namespace()), 200, soap.V12.Namespace()},
		{strings.ReplaceAll(mandatory, "mustUnderstand", "mustunderstand"), 200, "<quotient>2</quotient>"},
		{mandatory, 500, "MustUnderstand"},
		{"", 500, "the document ends too early"},
		{`<Envelope xmlns="urn:x"/>`, 500, "VersionMismatch"},
		{in11("<x/>"), 500, "there is no operation x here, only {urn:example:math}divide"},
		{in11(strings.Replace(fine, ">6<", ">six<", 1)), 500,
			`divide/dividend: "six" is no integer of 64 bits`},
		{"<!DOCTYPE a [<!ENTITY b \"b\">]>" + in11(fine), 500, "a document type declaration is not allowed"},
		{in11(fine + fine), 500, "there is divide where nothing more is expected"},
		{in11(strings.Replace(fine, "<dividend>", strings.Repeat("<a>", 2000), 1)), 500, "nest deeper"},
	} {
		reply, err := hhfr.Call(t.Context(), url, tc.body)
		require.NoError(t, err)
		body, err := reply.ReadAll()
		require.NoError(t, err)
		assert.Equal(t, tc.status, reply.Status, "%s", body)
		assert.Contains(t, string(body), tc.want)
	}
	url = serve(t, plain, http.MaxBytesHandler(op.Handler(divide), 10))
	reply, err := hhfr.Call(t.Context(), url, in11(fine))
	require.NoError(t, err)
	require.NoError(t, reply.Body.Close())
	assert.Equal(t, http.StatusRequestEntityTooLarge, reply.Status)
	resp, err := http.Get(url) //nolint:noctx // a test
	require.NoError(t, err)
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	assert.Equal(t, http.StatusMethodNotAllowed, resp.StatusCode)
}

// Structs of a type have one shape, and travel in few bytes.
func TestInvokeTakesFewBytes(t *testing.T) {
	op, err := hhfr.NewOperation[division, quotient]("", soap.V11)
	require.NoError(t, err)
	client := dialed(t, serve(t, stream, op.Handler(divide)))
	call := func(n int64) {
		_, err := hhfr.Invoke(t.Context(), client, op, &division{Dividend: 1000 + n, Divisor: 3})
		require.NoError(t, err)
	}
	for i := range int64(20) { // until the shapes are known
		call(i)
	}
	before := client.Counters()
	for i := range int64(50) {
		call(i * 7)
	}
	after := client.Counters()
	assert.Less(t, after.Sent.Wire-before.Sent.Wire, int64(50*24), "of 50 messages")
	assert.Less(t, after.Received.Wire-before.Received.Wire, int64(50*24))
}
