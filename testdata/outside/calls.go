package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/hhfr/hhfr"
)

const envelope = `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/">` +
	`<s:Body><get>%s</get></s:Body></s:Envelope>`

// calls serves with net/http's types, and calls that.
func calls(ctx context.Context) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &hhfr.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/xml; charset=utf-8")
		_, _ = io.Copy(w, r.Body)
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	client, err := hhfr.Dial(ctx, "http://"+listener.Addr().String(), nil)
	if err != nil {
		return err
	}
	for _, value := range []string{"one", "two"} {
		sent := fmt.Sprintf(envelope, value)
		reply, err := client.Call(ctx, &hhfr.Request{Action: "urn:x:get", Body: hhfr.Body(sent)})
		if err != nil {
			return err
		}
		body, err := reply.ReadAll()
		if err != nil {
			return err
		}
		fmt.Println("hhfr:", reply.Status, string(body) == sent)
	}
	if err := client.Close(); err != nil {
		return err
	}
	if err := server.Close(); err != nil {
		return err
	}
	return <-served
}
