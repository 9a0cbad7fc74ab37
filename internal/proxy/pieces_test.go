package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/proxy"
)

// inPieces is how a program writes a message: head and body at once, or the body later than the
// head, and in pieces of that many bytes.
type inPieces struct {
	after, gap time.Duration
	size       int
	chunked    bool
}

// write writes a message of XML with that first line and those fields.
func (w inPieces) write(to io.Writer, start, body string) error {
	head, pieces := fmt.Sprintf("%s\r\nContent-Type: text/xml; charset=utf-8\r\n", start), []string{body}
	if w.size > 0 {
		pieces = nil
		for p := range slices.Chunk([]byte(body), w.size) {
			pieces = append(pieces, string(p))
		}
	}
	if w.chunked {
		head += "Transfer-Encoding: chunked\r\n\r\n"
		for i, p := range pieces {
			pieces[i] = fmt.Sprintf("%x\r\n%s\r\n", len(p), p)
		}
		pieces[len(pieces)-1] += "0\r\n\r\n"
	} else {
		head += fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body))
	}
	if w.after == 0 {
		pieces[0] = head + pieces[0]
	} else {
		pieces = append([]string{head}, pieces...)
	}
	for i, p := range pieces {
		switch {
		case i == 0:
		case i == 1 && w.after > 0:
			time.Sleep(w.after)
		default:
			time.Sleep(w.gap)
		}
		if _, err := io.WriteString(to, p); err != nil {
			return err
		}
	}
	return nil
}

// conversation has a client of a pair make calls with bodies of some rows, and gives what went over
// the link for them: bytes, and writes, which are packets.
func conversation(t *testing.T, request, reply inPieces, calls, rows int) (octets, writes int64) {
	n, link := &hosts{places: map[string]*host{}}, [2]atomic.Int64{}
	body := func(call, rows int) string {
		var b strings.Builder
		b.WriteString(`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><m xmlns="urn:x">`)
		for i := range rows {
			_, _ = fmt.Fprintf(&b, "<row><number>%d</number><text>all is well</text></row>", 1000*call+i)
		}
		return b.String() + "</m></s:Body></s:Envelope>"
	}
	upstream := n.listen()
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := upstream.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer func() { _ = conn.Close() }()
				r := requests{conn: conn}
				for i := 0; ; i++ {
					h, err := r.head()
					if err != nil {
						return
					}
					if string(h.Method()) == "OPTIONS" {
						_, _ = io.WriteString(conn, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
						continue
					}
					_, entity, err := r.body(&h)
					assert.NoError(t, err)
					assert.Equal(t, body(i, rows), string(entity))
					assert.NoError(t, reply.write(conn, "HTTP/1.1 200 OK\r\nServer: x/1", body(i, rows/2+1)))
				}
			})
		}
	})
	far, between := n.proxy(t, proxy.Config{}, upstream.url(), nil)
	near, entry := n.proxy(t, proxy.Config{Hooks: proxy.Hooks{WrapDialed: func(conn net.Conn) net.Conn {
		return metered{countedConn{conn, &link[1]}, &link[0], &link[0]}
	}}}, between.url(), n)
	require.NoError(t, near.Linked(t.Context()))
	conn, err := n.dial(t.Context(), "", entry.addr.String())
	require.NoError(t, err)
	replies := bufio.NewReader(conn)
	for i := range calls {
		if i == 1 { // the first has the shapes with it
			octets, writes = link[0].Load(), link[1].Load()
		}
		require.NoError(t, request.write(conn, "POST /service HTTP/1.1\r\nHost: x\r\nSOAPAction: \"urn:x:m\"",
			body(i, rows)))
		resp, err := http.ReadResponse(replies, nil)
		require.NoError(t, err)
		entity, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, body(i, rows/2+1), string(entity))
	}
	octets, writes = link[0].Load()-octets, link[1].Load()-writes
	_ = conn.Close()
	require.NoError(t, near.Close())
	require.NoError(t, far.Close())
	_ = upstream.Close()
	running.Wait()
	return octets, writes
}

// TestHeadAndBodyAreOneMessage: what a message costs does not depend on how its program writes it,
// as long as no piece is later than BodyPause; of chunks, DefaultGather. One that pauses for longer
// costs its head at most once.
func TestHeadAndBodyAreOneMessage(t *testing.T) {
	const calls = 8
	one := inPieces{}
	for rows, size := range map[int]int{3: 100, 30: 100, 3000: 10_000} { // in all not as long as lanes remember
		t.Run(fmt.Sprint(rows), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				want, writes := conversation(t, one, one, calls, rows)
				inChunks, _ := conversation(t, inPieces{chunked: true, size: size},
					inPieces{chunked: true, size: size}, calls, rows)
				for name, w := range map[string]inPieces{
					"two writes":  {after: 1},
					"late bodies": {after: 40 * time.Millisecond},
					"later":       {after: proxy.BodyPause - 1},
					"drips":       {after: 1, gap: proxy.BodyPause - 1, size: size},
					"chunks":      {after: 1, gap: proxy.BodyPause - 1, size: size, chunked: true},
				} {
					most := want
					if w.chunked {
						most = inChunks
					}
					octets, packets := conversation(t, w, w, calls, rows)
					assert.LessOrEqual(t, octets, most+most/10, "octets, %s", name)
					assert.LessOrEqual(t, packets, writes+writes/10+2*calls, "packets, %s", name)
				}
				paused := inPieces{after: 2 * proxy.BodyPause}
				octets, _ := conversation(t, paused, paused, calls, rows)
				assert.LessOrEqual(t, octets, want+want/10+2*calls*8, "octets, paused")
			})
		})
	}
}
