package soap_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/hhfr/hhfr/pkg/soap"
)

// An endpoint that greets, and a call of it in SOAP 1.2. A header block that must be understood, and is not, is refused.
func ExampleHandler() {
	server := httptest.NewServer(&soap.Handler{Serve: func(_ context.Context, r *soap.Envelope, _ string) (*soap.Envelope, error) {
		return &soap.Envelope{Body: []soap.Element{{Name: soap.Name{Space: "urn:example", Local: "greeting"}, Text: "hello " + r.Body[0].Text}}}, nil
	}})
	defer server.Close()
	request := &soap.Envelope{Version: soap.V12, Body: []soap.Element{{Name: soap.Name{Space: "urn:example", Local: "greet"}, Text: "world"}}}
	caller := &soap.Caller{HTTP: server.Client()}
	reply, err := caller.Call(context.Background(), server.URL, "urn:example:greet", request)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(reply.Version, reply.Body[0].Text)

	request.Header = []soap.Element{{Name: soap.Name{Space: "urn:example", Local: "Hurry"}, MustUnderstand: true}}
	_, err = caller.Call(context.Background(), server.URL, "urn:example:greet", request)
	fmt.Println(err)
	// Output:
	// 1.2 hello world
	// SOAP fault: MustUnderstand: "header block {urn:example}Hurry must be understood"
}
