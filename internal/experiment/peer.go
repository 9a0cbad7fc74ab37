package experiment

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
)

// MachinePath is where hhfr serve tells of its machine: GET gives a [Computer].
const MachinePath = "/machine"

// Ask returns what the server of a URL tells of its machine; nil: it tells nothing. Nothing depends
// on it, so that errors are not worth a word.
func Ask(ctx context.Context, client *http.Client, of *url.URL) *Computer {
	at := url.URL{Scheme: of.Scheme, Host: of.Host, Path: MachinePath}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil
	}
	reply, err := client.Do(r)
	if err != nil {
		return nil
	}
	defer func() { _ = reply.Body.Close() }()
	const longest = 64 << 10
	var c Computer
	err = json.NewDecoder(io.LimitReader(reply.Body, longest)).Decode(&c)
	if err != nil || reply.StatusCode != http.StatusOK || c.System == "" {
		return nil
	}
	return &c
}
