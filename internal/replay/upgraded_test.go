package replay_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/pcapng"
	"github.com/hhfr/hhfr/internal/replay"
	"github.com/hhfr/hhfr/internal/wire"
)

// way is a direction of a stream without shapes.
type way struct {
	t testing.TB
	*wire.Encoder
	hello []byte
}

func newWay(t testing.TB, h frame.Hello) *way {
	h.Representation, h.Limits = frame.XML, frame.EarlyLimits
	w := &way{t: t, hello: h.AppendTo(nil)}
	cfg := wire.EncoderConfig{Origin: frame.OriginOf(h), Word: h.Word, Limits: h.Limits}
	w.Encoder = wire.NewEncoder(cfg, len(w.hello), time.Time{})
	return w
}

// says are the bytes of messages, after the hello at first.
func (w *way) says(bodies map[frame.Key]string, last bool) string {
	for k, body := range bodies {
		m, part := wire.Outgoing{Key: k}, wire.Part{There: true, Content: []byte(body), Last: true}
		require.NoError(w.t, w.Data(&m, &wire.Part{}, &part, true, time.Time{}))
	}
	if last {
		w.Close(frame.CloseDone, "")
	}
	b := append(w.hello, w.Bytes()...)
	w.hello = nil
	w.Reset()
	return string(b)
}

// talked records connections on which the two sides alternate in sending what is given, the client
// first.
func talked(t testing.TB, connections ...[]string) []byte {
	var file bytes.Buffer
	rec := pcapng.NewRecorder(&file, time.Now)
	for _, turns := range connections {
		client, server := net.Pipe()
		c := rec.Conn(client)
		for i, text := range turns {
			from, to := net.Conn(c), server
			if i%2 == 1 {
				from, to = server, c
			}
			done := make(chan error, 1)
			go func() { _, err := io.WriteString(from, text); done <- err }()
			_, err := io.ReadFull(to, make([]byte, len(text)))
			require.NoError(t, err)
			require.NoError(t, <-done)
		}
		require.NoError(t, c.Close())
		require.NoError(t, server.Close())
	}
	require.NoError(t, rec.Close())
	return file.Bytes()
}

func soapOf(n int) string {
	const soap = `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><m>%d</m></s:Body>` +
		`</s:Envelope>`
	return fmt.Sprintf(soap, n)
}

func posted(fields, body string) string {
	return fmt.Sprintf("POST /service?q HTTP/1.1\r\nHost: h\r\nContent-Type: text/xml\r\n"+
		"%sContent-Length: %d\r\n\r\n%s",
		fields, len(body), body)
}

// TestUpgradedConnectionsAreSentAgain: the upgraded request with its reply, without the fields of
// the upgrade, and those after it go to the same URL; on another stream of the session, too.
func TestUpgradedConnectionsAreSentAgain(t *testing.T) {
	request := posted("Connection: Upgrade\r\nUpgrade: hhfr/1\r\nHHFR: 1\r\n", soapOf(1))
	agreed := "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: hhfr/1\r\n\r\n"
	var connections [][]string
	for i := range 2 {
		out := newWay(t, frame.Hello{Session: [16]byte{1}, Token: make([]byte, frame.TokenLen), Word: [8]byte{byte(i)}})
		back := newWay(t, frame.Hello{Responder: true, Session: [16]byte{1}, Word: [8]byte{byte(i)}})
		first, second := frame.Key{Exchange: 1}, frame.Key{Exchange: 2}
		answer := func(k frame.Key, n int) map[frame.Key]string {
			k.Reply = true
			return map[frame.Key]string{k: soapOf(n)}
		}
		if i == 0 {
			connections = append(connections, []string{request, agreed + back.says(answer(first, 2), false),
				out.says(map[frame.Key]string{second: soapOf(3)}, true), back.says(answer(second, 4), true)})
		} else {
			connections = append(connections, []string{
				out.says(map[frame.Key]string{first: soapOf(5)}, true), back.says(answer(first, 6), true)})
		}
	}
	rec, err := replay.Load(t.Context(), bytes.NewReader(talked(t, connections...)), nil)
	require.NoError(t, err)
	assert.False(t, rec.Partial)
	assert.Zero(t, rec.Skipped)
	require.Len(t, rec.Exchanges, 3)
	for i, x := range rec.Exchanges {
		assert.Equal(t, i+1, x.Number)
		assert.Equal(t, soapOf(2*i+1), string(x.Body))
		assert.True(t, x.Answered)
		assert.Equal(t, 200, x.Status)
		assert.Equal(t, soapOf(2*i+2), string(x.Reply))
		assert.True(t, strings.HasPrefix(string(x.Head), "POST /service"), "%s", x.Head)
		for _, field := range []string{"Upgrade", "HHFR", "Connection"} {
			assert.NotContains(t, string(x.Head), field)
		}
	}
}

// TestDeclinedRequestsAreSentOnce: a request that was sent on a stream that the peer declined, and
// then by HTTP.
func TestDeclinedRequestsAreSentOnce(t *testing.T) {
	out := newWay(t, frame.Hello{Session: [16]byte{1}, Token: make([]byte, frame.TokenLen)})
	declined := frame.Hello{Responder: true, Session: [16]byte{1}, Limits: frame.EarlyLimits}.AppendTo(nil)
	declined = frame.Close{Code: frame.CloseUnknownSession}.AppendTo(declined)
	reply := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(soapOf(2)), soapOf(2))
	rec, err := replay.Load(t.Context(), bytes.NewReader(talked(t,
		[]string{out.says(map[frame.Key]string{{Exchange: 1}: soapOf(1)}, false), string(declined)},
		[]string{posted("", soapOf(1)), reply})), nil)
	require.NoError(t, err)
	assert.Equal(t, 1, rec.Skipped)
	require.Len(t, rec.Exchanges, 1)
	assert.Equal(t, soapOf(2), string(rec.Exchanges[0].Reply))
}

// TestInterimRepliesAreNoReplies: a request with interim replies alone has no recorded reply; one
// after them is the recorded reply.
func TestInterimRepliesAreNoReplies(t *testing.T) {
	const early = "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n"
	for _, final := range []bool{false, true} {
		out := newWay(t, frame.Hello{Session: [16]byte{1}, Token: make([]byte, frame.TokenLen)})
		back := newWay(t, frame.Hello{Responder: true, Session: [16]byte{1}})
		key := frame.Key{Exchange: 1}
		request := out.says(map[frame.Key]string{key: soapOf(1)}, true)
		key.Reply = true
		m := wire.Outgoing{Key: key, Interim: true}
		head, body := wire.Part{There: true, Content: []byte(early), Last: true}, wire.Part{There: true, Last: true}
		require.NoError(t, back.Data(&m, &head, &body, true, time.Time{}))
		bodies := map[frame.Key]string{}
		if final {
			bodies[key] = soapOf(2)
		}
		reply := back.says(bodies, true)
		rec, err := replay.Load(t.Context(), bytes.NewReader(talked(t, []string{request, reply})), nil)
		require.NoError(t, err)
		require.Len(t, rec.Exchanges, 1)
		assert.Equal(t, final, rec.Exchanges[0].Answered)
		if final {
			assert.Equal(t, 200, rec.Exchanges[0].Status)
			assert.Equal(t, soapOf(2), string(rec.Exchanges[0].Reply))
		}
	}
	for _, final := range []string{"", fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s",
		len(soapOf(2)), soapOf(2))} {
		rec, err := replay.Load(t.Context(), bytes.NewReader(talked(t, []string{posted("", soapOf(1)), early + final})),
			nil)
		require.NoError(t, err)
		require.Len(t, rec.Exchanges, 1)
		assert.Equal(t, final != "", rec.Exchanges[0].Answered, "in plain HTTP")
	}
}
