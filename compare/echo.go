package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/hhfr/hhfr/compare/internal/ends"
)

// echo is a long text that a server returns while it reads, through one proxy and through a pair;
// nanoseconds are medians.
type echo struct {
	Octets int     `json:"octets"`
	One    float64 `json:"one_proxy_ns"`
	Pair   float64 `json:"pair_ns"`
	Ratio  float64 `json:"ratio"`
}

// measureEcho echoes in turns.
func measureEcho(ctx context.Context, octets, turns int) (e *echo, err error) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			return
		}
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.Copy(w, r.Body) // the client detects it
	}))
	defer server.Close()
	urls, stop, err := ends.Pair(ctx, server.URL)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	var text bytes.Buffer
	for n := 0; text.Len() < octets; n++ {
		fmt.Fprintf(&text, "line %d says that all is well, and that %x is a number\n", n, n*n*7919)
	}
	e = &echo{Octets: text.Len()}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var times [2][]float64
	for range turns {
		for i, through := range urls {
			began := time.Now()
			if err := echoOnce(ctx, client, through+"/", text.Bytes()); err != nil {
				return nil, err
			}
			times[i] = append(times[i], float64(time.Since(began)))
		}
	}
	e.One, e.Pair = median(times[0]), median(times[1])
	e.Ratio = e.Pair / e.One
	return e, nil
}

func echoOnce(ctx context.Context, client *http.Client, to string, text []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "text/plain")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	back, err := io.ReadAll(resp.Body)
	if err == nil && !bytes.Equal(back, text) {
		err = errors.New("an echo differs")
	}
	return errors.Join(err, resp.Body.Close())
}

func (r *results) writeEcho(p *tablePrinter) {
	e := r.Echo
	if e == nil {
		return
	}
	p.printf("\nA text that a server gives back while it reads, through one proxy and through a pair; ms are " +
		"medians.\n\n")
	p.table(cells{{"bytes", "one, ms", "pair, ms"},
		{number(float64(e.Octets)), micros(e.One / 1e3), micros(e.Pair / 1e3)}})
}

func echoOf(of func(*echo) float64) func(*results) (float64, bool) {
	return func(r *results) (float64, bool) {
		if r.Echo == nil {
			return 0, false
		}
		return of(r.Echo), true
	}
}
