package hhfr_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr"
	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/pkg/ctxstore/directory"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
)

// beginner is a peer that begins exchanges on the first stream that is opened. A client that lost
// that one may have opened another before its test is over.
func beginner(t *testing.T, begin func(s *streamer.Stream)) string {
	t.Helper()
	l, err := tcp.Transport{}.Listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	begun := make(chan struct{})
	var once sync.Once
	h, err := responder.NewHandler(echo, responder.Config{
		Store: newStore(t), Addresses: map[string]string{"tcp": ":" + port},
		OnStream: func(_ negotiate.Facts, s *streamer.Stream) {
			once.Do(func() {
				go func() {
					defer close(begun)
					begin(s)
				}()
			})
		},
	})
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- h.ServeStreams(context.Background(), l) }()
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		server.Close()
		require.NoError(t, h.Close())
		<-served
		<-begun
	})
	return server.URL
}

func TestMessages(t *testing.T) {
	replies := make(chan string, 3)
	url := beginner(t, func(s *streamer.Stream) {
		lane := s.Lane(0)
		for _, body := range []string{envelope("1.2", "<ask/>"), "<other/>", "<nobody/>"} {
			head := "POST /service HTTP/1.1\r\nContent-Type: application/soap+xml; action=\"urn:ask\"\r\n\r\n"
			reply, err := lane.Call(context.Background(), streamer.NewMessage([]byte(head), []byte(body)))
			if err != nil {
				replies <- err.Error()
				continue
			}
			got, _ := reply.ReadAll(1 << 20)
			replies <- string(reply.Head) + string(got)
		}
		_ = lane.Send(context.Background(), streamer.NewMessage(nil, []byte(envelope("1.1", "<tick/>"))))
	})
	c := dial(t, url+"/here", nil)
	n := 0
	for m := range c.Messages() {
		body, err := io.ReadAll(m.Body)
		require.NoError(t, err)
		switch n++; n {
		case 1:
			assert.Equal(t, "urn:ask", m.Action)
			assert.Equal(t, "/service", m.Target)
			assert.False(t, m.OneWay)
			require.NoError(t, m.Reply(t.Context(), &hhfr.Reply{Body: hhfr.Body(body)}))
			require.ErrorIs(t, m.Reply(t.Context(), &hhfr.Reply{}), &hhfr.Error{Code: hhfr.Invalid})
		case 2:
			require.NoError(t, m.Reply(t.Context(), &hhfr.Reply{Status: 500, Header: http.Header{"X": {"y"}}}))
		case 3: // without an answer
		case 4:
			assert.True(t, m.OneWay)
			assert.Equal(t, "/here", m.Target)
			assert.Equal(t, envelope("1.1", "<tick/>"), string(body))
			require.ErrorIs(t, m.Reply(t.Context(), &hhfr.Reply{Body: hhfr.Body("x")}), &hhfr.Error{Code: hhfr.Invalid})
		}
		if n == 4 {
			break
		}
	}
	assert.Equal(t, "HTTP/1.1 200 OK\r\nContent-Type: application/soap+xml; charset=utf-8\r\n\r\n"+
		envelope("1.2", "<ask/>"), <-replies)
	assert.Equal(t, "HTTP/1.1 500 Internal Server Error\r\nX: y\r\n\r\n", <-replies)
	assert.Contains(t, <-replies, "fail")
}

// Messages ends for everybody who waits for messages.
func TestMessagesEnd(t *testing.T) {
	url := beginner(t, func(s *streamer.Stream) {
		_ = s.Lane(0).Send(context.Background(), streamer.NewMessage(nil, []byte("<tick/>")))
	})
	c := dial(t, url, nil)
	for range c.Messages() {
		require.NoError(t, c.Close()) // while a message is in use
	}
	c = dial(t, serve(t, plain, echo), nil)
	for range c.Messages() {
		t.Fatal("in plain SOAP the peer has no way to begin")
	}
	url = beginner(t, func(s *streamer.Stream) {
		_ = s.Lane(0).Send(context.Background(), streamer.NewMessage(nil, []byte("<tick/>")))
	})
	cfg := config(t)
	cfg.Mode = "explicit"
	require.NoError(t, dial(t, url, cfg).Close(), "nobody took the message")
}

func TestDecode(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "pcap", "session.pcapng"))
	require.NoError(t, err)
	store, err := directory.Open(filepath.Join("testdata", "pcap", "store"), directory.Config{})
	require.NoError(t, err)
	defer store.Close()
	want, err := capture.Decode(t.Context(), bytes.NewReader(data), capture.DecodeConfig{Store: store})
	require.NoError(t, err)
	type seen struct {
		exchange, status int
		body             string
		sound            bool
	}
	var wanted []seen
	for _, m := range want.Messages {
		status := 0
		if m.Reply {
			status = 200
		}
		wanted = append(wanted, seen{m.Number, status, string(m.Body), m.Whole()})
	}
	for name, in := range map[string]io.Reader{"file": bytes.NewReader(data),
		"pipe": io.MultiReader(bytes.NewReader(data))} {
		var got []seen
		streamed := 0
		for m, err := range hhfr.Decode(in, store) {
			require.NoError(t, err)
			body, err := io.ReadAll(m.Body)
			require.NoError(t, err)
			got = append(got, seen{m.Exchange, m.Status, string(body), m.Err == nil})
			assert.False(t, m.Time.IsZero())
			assert.True(t, m.From.IsValid() && m.To.IsValid())
			if m.Session != "" {
				streamed++
			}
			require.ErrorIs(t, m.Reply(t.Context(), &hhfr.Reply{}), &hhfr.Error{Code: hhfr.Invalid})
		}
		assert.ElementsMatch(t, wanted, got, name)
		assert.Positive(t, streamed)
	}
	for range hhfr.Decode(bytes.NewReader(data), store) {
		break
	}
	for name, data := range map[string][]byte{"empty": nil, "no capture": []byte("<Envelope/>"), "cut": data[:30]} {
		var last error
		for _, err := range hhfr.Decode(bytes.NewReader(data), nil) {
			last = err
		}
		require.ErrorIs(t, last, &hhfr.Error{Code: hhfr.Malformed}, name)
	}
}
