package export_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/export"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/facts"
	"github.com/hhfr/hhfr/internal/capture"
)

func service(*capture.Decoded) capture.Endpoint { return capture.Endpoint{} }

// message is one of plain SOAP.
func message(number int, reply bool, body string) facts.Asked {
	head := "POST /a?x=1&y=2 HTTP/1.1\r\nHost: shop.example\r\nX-Empty:\r\nContent-Type: text/xml\r\n" +
		"Content-Length: 1\r\n\r\n"
	if reply {
		head = "HTTP/1.1 500 Oh\r\nContent-Type: text/xml\r\n\r\n"
	}
	return facts.Asked{Decoded: &capture.Decoded{
		Number: number, Reply: reply, Head: []byte(head), Body: []byte(body), BodyOctets: int64(len(body)),
		State: capture.Unchecked,
	}}
}

func TestCurl(t *testing.T) {
	var out bytes.Buffer
	e := export.New(&out, "curl", service)
	for i, body := range []string{"@it's", "esc \x1b", "nul \x00"} {
		written, err := e.Add(message(i+1, false, body), true)
		require.NoError(t, err)
		assert.False(t, written, "its reply may come")
	}
	require.NoError(t, e.Close())
	const begin = "curl -s -X 'POST' \\\n  -H 'X-Empty;' \\\n  -H 'Content-Type: text/xml' \\\n"
	assert.Equal(t, 2, strings.Count(out.String(), begin))
	assert.Contains(t, out.String(), `--data-raw '@it'\''s'`)
	assert.Contains(t, out.String(), `--data-raw $'esc \033'`)
	assert.Contains(t, out.String(), "# left out: no shell")
	assert.Contains(t, out.String(), "'http://shop.example/a?x=1&y=2'")
}

// TestUnansweredRequestsAreBounded: what waits for replies that never come is written at last, and
// a reply that comes after that has no exchange.
func TestUnansweredRequestsAreBounded(t *testing.T) {
	var out bytes.Buffer
	e := export.New(&out, "har", service)
	const all = 20_000
	for i := range all {
		_, err := e.Add(message(i+1, false, "<a/>"), true)
		require.NoError(t, err)
	}
	before := strings.Count(out.String(), `"startedDateTime"`)
	assert.Greater(t, before, all/2)
	written, err := e.Add(message(1, true, "<late/>"), true)
	require.NoError(t, err)
	assert.False(t, written)
	written, err = e.Add(message(all, true, "<b/>"), false)
	require.NoError(t, err)
	assert.True(t, written, "its request is wanted")
	require.NoError(t, e.Close())
	var har struct {
		Log struct {
			Entries []struct {
				Request struct {
					QueryString []struct{ Name, Value string }
				}
				Response struct{ Status int }
			}
		}
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &har))
	require.Len(t, har.Log.Entries, all)
	answered := 0
	for _, one := range har.Log.Entries {
		if one.Response.Status > 0 {
			answered++
		}
	}
	assert.Equal(t, 1, answered)
	assert.Equal(t, "[{x 1} {y 2}]", fmt.Sprint(har.Log.Entries[0].Request.QueryString))
}
