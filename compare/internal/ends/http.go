package ends

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/coder/websocket"
)

// Requests have these fields, as those of services with users have them.
const (
	contentType   = "text/xml; charset=utf-8"
	soapAction    = `"urn:example:echo"`
	authorization = "Basic dXNlcjpwYXNzd29yZA=="
)

// bodyOf reads a request to its end, into memory of its own.
func bodyOf(r *http.Request) []byte {
	body, err := make([]byte, max(r.ContentLength, 0)), error(nil)
	if r.ContentLength < 0 {
		body, err = io.ReadAll(r.Body)
	} else {
		_, err = io.ReadFull(r.Body, body)
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return body
}

// echo returns what it gets.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body := bodyOf(r)
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(body) // the client detects it
})

// serveHTTP serves over HTTP/1.1 and HTTP/2 without TLS.
func serveHTTP(ctx context.Context, handler http.Handler) (addr string, end func() error, err error) {
	l, err := loopback(ctx)
	if err != nil {
		return "", nil, err
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: handler, Protocols: &protocols}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	return l.Addr().String(), func() error {
		err := server.Close()
		if served := <-done; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}, nil
}

// post sends a message and reads the reply.
func post(ctx context.Context, client *http.Client, url string, m []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(m))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("SOAPAction", soapAction)
	req.Header.Set("Authorization", authorization)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && !bytes.Equal(body, m) {
		err = fmt.Errorf("status %s, and another body than was sent", resp.Status)
	}
	return err
}

func openHTTP(ctx context.Context, messages [][]byte) (*contestant, error) {
	return posting(ctx, messages, &http.Transport{}, 1)
}

func openHTTPCrowd(ctx context.Context, messages [][]byte) (*contestant, error) {
	return posting(ctx, messages, &http.Transport{MaxIdleConnsPerHost: inFlight}, inFlight)
}

func openH2C(ctx context.Context, messages [][]byte) (*contestant, error) {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	return posting(ctx, messages, &http.Transport{Protocols: &protocols}, 1)
}

func posting(ctx context.Context, messages [][]byte, t *http.Transport, callers int) (*contestant, error) {
	addr, end, err := serveHTTP(ctx, echo)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: t}
	return crowded(callers, messages, func(m []byte) error { return post(ctx, client, "http://"+addr+"/echo", m) },
		func() error { t.CloseIdleConnections(); return end() }), nil
}

func openWebSocket(ctx context.Context, messages [][]byte) (*contestant, error) {
	addr, end, err := serveHTTP(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		for {
			kind, m, err := c.Read(ctx)
			if err != nil || c.Write(ctx, kind, m) != nil {
				return
			}
		}
	}))
	if err != nil {
		return nil, err
	}
	c, resp, err := websocket.Dial(ctx, "ws://"+addr+"/", nil)
	if err != nil {
		return nil, errors.Join(err, end())
	}
	if resp.Body != nil {
		defer resp.Body.Close()
	}
	return each(messages, func(m []byte) error {
		if err := c.Write(ctx, websocket.MessageText, m); err != nil {
			return err
		}
		_, back, err := c.Read(ctx)
		if err == nil && len(back) != len(m) {
			err = errors.New("another message came back")
		}
		return err
	}, func() error { return errors.Join(c.CloseNow(), end()) }), nil
}
