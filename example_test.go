package hhfr_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/hhfr/hhfr"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/ctxstore/wscontext"
	"github.com/hhfr/hhfr/pkg/soap"
)

// shout is a service of net/http.
var shout = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "text/xml; charset=utf-8")
	_, _ = w.Write(bytes.ToUpper(body))
})

// listening serves on a free port.
func listening(server *hhfr.Server) (url string, stop func()) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	served := make(chan error)
	go func() { served <- server.Serve(l) }()
	return "http://" + l.Addr().String(), func() { fmt.Println(server.Close(), <-served) }
}

func printReply(reply *hhfr.Reply, err error) {
	if err != nil {
		fmt.Println(err)
		return
	}
	body, err := reply.ReadAll()
	fmt.Println(string(body), err)
}

func Example() {
	url, stop := listening(&hhfr.Server{Handler: shout})
	defer stop()
	ctx := context.Background()
	client, err := hhfr.Dial(ctx, url, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	reply, err := client.Call(ctx, &hhfr.Request{Action: "urn:x:get", Body: hhfr.Body("<get/>")})
	if err != nil {
		fmt.Println(err)
		return
	}
	body, err := reply.ReadAll()
	fmt.Println(reply.Status, string(body), err)
	// Output:
	// 200 <GET/> <nil>
	// <nil> <nil>
}

// A client and a server that use one context service: a header block goes there once, and not with
// each message. The service gets it all the same.
func ExampleCommonContexts() {
	contexts, err := wscontext.New(wscontext.Config{Store: memory.New(memory.Config{})})
	if err != nil {
		panic(err)
	}
	service := httptest.NewServer(contexts)
	defer service.Close()
	ctx := context.Background()
	common := &hhfr.CommonContexts{URL: service.URL, Headers: []string{"{urn:example:fleet}Route"}}
	if common.Store, err = wscontext.Open(ctx, service.URL, wscontext.RemoteConfig{}); err != nil {
		panic(err)
	}
	defer func() { _ = common.Store.Close() }()
	url, stop := listening(&hhfr.Server{Handler: shout, Common: common})
	defer stop()
	const device = `<f:Device xmlns:f="urn:example:fleet">substation 0042</f:Device>`
	client, err := hhfr.Dial(ctx, url, &hhfr.Config{Common: common, Unchanging: []string{device}})
	if err != nil {
		panic(err)
	}
	defer client.Close()
	const message = `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Header>` + device +
		`</s:Header><s:Body/></s:Envelope>`
	reply, err := client.Call(ctx, &hhfr.Request{Body: hhfr.Body(message)})
	if err != nil {
		panic(err)
	}
	body, err := reply.ReadAll()
	fmt.Println(string(body) == strings.ToUpper(message), err)
	fragments := 0
	for range common.Store.List(ctx, ctxstore.FragmentPrefix) {
		fragments++
	}
	fmt.Println(fragments, "fragment in the common store")
	// Output:
	// true <nil>
	// 1 fragment in the common store
	// <nil> <nil>
}

func ExampleCall() {
	url, stop := listening(&hhfr.Server{Handler: shout})
	defer stop()
	printReply(hhfr.Call(context.Background(), url, "<get/>"))
	// Output:
	// <GET/> <nil>
	// <nil> <nil>
}

func ExampleError() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := hhfr.Call(ctx, "http://127.0.0.1:8080/echo", "<get/>")
	var e *hhfr.Error
	if errors.As(err, &e) && !e.Sent {
		fmt.Println("safe to send again:", err)
	}
	fmt.Println(errors.Is(err, &hhfr.Error{Code: hhfr.Unsent}), errors.Is(err, context.Canceled))
	// Output:
	// safe to send again: hhfr: not sent: context canceled
	// true true
}

// ExampleTransport is an unchanged client of net/http: only its Transport is another.
func ExampleTransport() {
	url, stop := listening(&hhfr.Server{Handler: shout})
	defer stop()
	transport := &hhfr.Transport{}
	defer transport.Close()
	client := &http.Client{Transport: transport}
	resp, err := client.Post(url, "text/xml", strings.NewReader("<get/>"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	fmt.Println(resp.Status, string(body), err)
	// Output:
	// 200 OK <GET/> <nil>
	// <nil> <nil>
}

// A server is shut down while it answers: whoever asked has the whole reply.
func ExampleServer_Shutdown() {
	asked := make(chan struct{})
	server := &hhfr.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		shout(w, r)
	})}
	url, stop := listening(server)
	defer stop()
	go func() {
		<-asked
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = server.Shutdown(ctx)
	}()
	printReply(hhfr.Call(context.Background(), url, "<get/>"))
	// Output:
	// <GET/> <nil>
	// <nil> <nil>
}

// A handler around all services counts their calls by operation.
func ExampleOperationOf() {
	calls := map[string]int{}
	url, stop := listening(&hhfr.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls[hhfr.OperationOf(r)]++
		shout(w, r)
	})})
	const envelope = `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/">` +
		`<s:Body><get/></s:Body></s:Envelope>`
	reply, err := hhfr.Call(context.Background(), url, envelope)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = reply.ReadAll()
	stop()
	fmt.Println(calls, err)
	// Output:
	// <nil> <nil>
	// map[get:1] <nil>
}

func ExampleClient_Counters() {
	url, stop := listening(&hhfr.Server{Handler: shout})
	defer stop()
	ctx := context.Background()
	client, err := hhfr.Dial(ctx, url, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	for range 100 {
		reply, err := client.Call(ctx, &hhfr.Request{Action: "urn:x:get", Body: hhfr.Body("<get/>")})
		if err != nil {
			fmt.Println(err)
			return
		}
		_, _ = reply.ReadAll()
	}
	c := client.Counters()
	fmt.Println(c.Requests, c.InFlight, c.Sent.Saved() > c.Sent.Bytes*3/4)
	// Output:
	// 100 0 true
	// <nil> <nil>
}

// ExampleHandler wraps the services of an existing server.
func ExampleHandler() {
	handler := &hhfr.Handler{Handler: shout}
	defer handler.Close()
	server := &http.Server{Handler: handler}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	reply, err := hhfr.Call(context.Background(), "http://"+l.Addr().String(), "<get/>")
	if err != nil {
		fmt.Println(err)
		return
	}
	body, err := reply.ReadAll()
	fmt.Println(string(body), err)
	// Output: <GET/> <nil>
}

func ExampleDecode() {
	file, err := os.Open("testdata/pcap/session.pcapng")
	if err != nil {
		panic(err)
	}
	defer file.Close()
	whole := 0
	for m, err := range hhfr.Decode(file, nil) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if m.Err == nil {
			whole++
		}
	}
	fmt.Println(whole > 0)
	// Output: true
}

// An operation whose requests and replies are structs: the client and the service know no XML.
func ExampleInvoke() {
	type Divide struct {
		XMLName  xml.Name `xml:"urn:example:math divide"`
		Dividend float64  `xml:"urn:example:math dividend"`
		Divisor  float64  `xml:"urn:example:math divisor"`
	}
	type Quotient struct {
		XMLName xml.Name `xml:"urn:example:math divideResponse"`
		Value   float64  `xml:"urn:example:math quotient"`
	}
	op, err := hhfr.NewOperation[Divide, Quotient]("urn:example:math:divide", soap.V12)
	if err != nil {
		panic(err) // a struct that cannot be a message
	}
	url, stop := listening(&hhfr.Server{Handler: op.Handler(func(_ context.Context, d *Divide) (*Quotient, error) {
		if d.Divisor == 0 {
			return nil, &soap.Fault{Code: soap.Client, Reason: "division by zero"}
		}
		return &Quotient{Value: d.Dividend / d.Divisor}, nil
	})})
	defer stop()
	ctx := context.Background()
	client, err := hhfr.Dial(ctx, url, nil)
	if err != nil {
		panic(err)
	}
	defer client.Close()
	res, err := hhfr.Invoke(ctx, client, op, &Divide{Dividend: 7, Divisor: 2})
	if err != nil {
		panic(err)
	}
	fmt.Println(res.Value)
	_, err = hhfr.Invoke(ctx, client, op, &Divide{Dividend: 7})
	var fault *soap.Fault
	fmt.Println(errors.As(err, &fault), fault.Code == soap.Client, fault.Reason)
	// Output:
	// 3.5
	// true true division by zero
	// <nil> <nil>
}

// A struct that cannot be a message is an error before the first message, and names the field.
func ExampleBind() {
	type Line struct {
		Price chan int
	}
	type Order struct {
		XMLName xml.Name `xml:"urn:example:shop Order"`
		Lines   []Line   `xml:"Line"`
	}
	_, err := hhfr.Bind[Order]()
	fmt.Println(err)
	// Output:
	// hhfr: invalid: Order.Lines[].Price: chan int has no form in XML
}
