package session_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/bolt"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/schema"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// hello is a SOAP service of net/http.
var hello = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/xml; charset=utf-8")
	if responder.FactsOf(r.Context()) != nil {
		fmt.Println("a request by a stream")
	}
	_, _ = io.Copy(w, r.Body)
})

// exampleServer has the service speak HHFR too.
func exampleServer(cfg responder.Config) (url string, stop func()) {
	streams, err := tcp.Transport{}.Listen(context.Background(), "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	_, port, _ := net.SplitHostPort(streams.Addr().String())
	cfg.Addresses = map[string]string{"tcp": ":" + port}
	handler, err := responder.NewHandler(hello, cfg)
	if err != nil {
		panic(err)
	}
	done := make(chan error)
	go func() { done <- handler.ServeStreams(context.Background(), streams) }()
	server := httptest.NewServer(handler)
	return server.URL, func() {
		_ = handler.Close()
		<-done
		server.Close()
	}
}

func ExampleDial() {
	url, stop := exampleServer(responder.Config{})
	defer stop()
	ctx := context.Background()
	sess, err := session.Dial(ctx, url, session.Config{RequireHHFR: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sess.Close()
	reply, err := sess.Call(ctx, streamer.NewMessage(nil, []byte("<Envelope>hello</Envelope>")))
	if err != nil {
		fmt.Println(err)
		return
	}
	body, err := reply.ReadAll(1 << 20)
	fmt.Println(sess.Agreed().Facts.Representation, string(body), err)
	// Output:
	// a request by a stream
	// urn:hhfr:representation:binary <Envelope>hello</Envelope> <nil>
}

// account is a service whose effects are part of the transactions of its messages: it counts them.
type account struct{}

func (account) Transactional(string) bool { return true }

func (account) Transact(_ context.Context, _ string, tx *wsrm.Tx, _ *streamer.Message) (*streamer.Message, error) {
	count := append(slices.Clone(tx.Value()), '|')
	tx.Set(count)
	return streamer.NewMessage(nil, []byte("<Envelope>"+string(count)+"</Envelope>")), nil
}

func (account) Handle(context.Context, string, *streamer.Message) *streamer.Message { return nil }

// Each message is committed once, whatever breaks on the path, as long as the stores at both ends
// survive.
func ExampleSession_Finish() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "hhfr")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	var stores [2]ctxstore.Store
	for i := range stores {
		if stores[i], err = bolt.Open(filepath.Join(dir, fmt.Sprint(i)), bolt.Config{}); err != nil {
			panic(err)
		}
		defer stores[i].Close()
	}
	url, stop := exampleServer(responder.Config{Store: stores[0], Sequenced: account{}})
	defer stop()
	sess, err := session.Dial(ctx, url,
		session.Config{Store: stores[1], Assurance: wsrm.ExactlyOnce, Ordered: true, Reconnect: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sess.Close()
	for range 3 {
		reply, err := sess.Call(ctx, streamer.NewMessage(nil, []byte("<Envelope/>")))
		if err != nil {
			fmt.Println(err)
			return
		}
		body, _ := reply.ReadAll(1 << 20)
		fmt.Println(string(body))
	}
	fmt.Println(sess.Finish(ctx))
	// Output:
	// <Envelope>|</Envelope>
	// <Envelope>||</Envelope>
	// <Envelope>|||</Envelope>
	// <nil>
}

// A peer that knows nothing of HHFR gets plain SOAP.
func ExampleDial_plain() {
	server := httptest.NewServer(hello)
	defer server.Close()
	sess, err := session.Dial(context.Background(), server.URL, session.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sess.Close()
	fmt.Println(sess.Agreed().HHFR)
	_, err = session.Dial(context.Background(), server.URL, session.Config{RequireHHFR: true})
	fmt.Println(errors.Is(err, &negotiate.Error{Code: negotiate.NoHHFR}))
	// Output:
	// false
	// true
}

func ExampleSession_OnMessage() {
	url, stop := exampleServer(responder.Config{OnStream: func(_ negotiate.Facts, s *streamer.Stream) {
		go func() { _ = s.Lane(0).Send(context.Background(), streamer.NewMessage(nil, []byte("tick"))) }()
	}})
	defer stop()
	got := make(chan string)
	sess, err := session.Dial(context.Background(), url,
		session.Config{Handler: func(_ context.Context, x *streamer.Exchange) {
			body, _ := x.Message().ReadAll(1 << 20)
			got <- string(body)
		}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sess.Close()
	fmt.Println(<-got)
	sess.OnMessage(func(context.Context, *streamer.Exchange) {}) // later messages are dropped
	// Output: tick
}

// An unchanged net/http program: only its Transport is another. The first request does not wait for
// the session, which is negotiated concurrently.
func ExampleNewRoundTripper() {
	url, stop := exampleServer(responder.Config{})
	defer stop()
	transport, err := session.NewRoundTripper(nil, session.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer transport.Close()
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	for range 2 {
		resp, err := client.Post(url, "text/xml; charset=utf-8", strings.NewReader("<Envelope>hello</Envelope>"))
		if err != nil {
			fmt.Println(err)
			return
		}
		body, err := io.ReadAll(resp.Body)
		fmt.Println(resp.StatusCode, string(body), err)
		_ = resp.Body.Close()
		transport.Session(url) // waits for the session; programs need not
	}
	// Output:
	// 200 <Envelope>hello</Envelope> <nil>
	// a request by a stream
	// 200 <Envelope>hello</Envelope> <nil>
}

// An unchanged net/http server with a handler around it.
func ExampleNewHandler() {
	streams, err := tcp.Transport{}.Listen(context.Background(), "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, port, _ := net.SplitHostPort(streams.Addr().String())
	handler, err := responder.NewHandler(hello, responder.Config{Addresses: map[string]string{"tcp": ":" + port}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer handler.Close()
	go func() { _ = handler.ServeStreams(context.Background(), streams) }()
	server := httptest.NewServer(handler)
	defer server.Close()
	sess, err := session.Dial(context.Background(), server.URL, session.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sess.Close()
	fmt.Println(sess.Agreed().HHFR)
	// Output: true
}

// Messages made of values, by a schema that both ends then know.
func ExampleConfig_requestSchema() {
	url, stop := exampleServer(responder.Config{})
	defer stop()
	floats, err := schema.Parse([]byte(`<element name="Sum" type="array" primitives="float"/>`))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	sess, err := session.Dial(ctx, url, session.Config{RequestSchema: floats})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sess.Close()
	message, err := floats.Message(map[string]any{"Sum": []float32{1.5, 2.25}})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = sess.Call(ctx, streamer.NewMessage(nil, message))
	fmt.Println(sess.Agreed().Facts.RequestDescription == floats.URI(), err)
	// Output:
	// a request by a stream
	// true <nil>
}
