package results

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/input"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// ServerMessage is a line of `hhfr stream --listen -o json` about a server-initiated message.
type ServerMessage struct {
	Initiated int    `json:"server_initiated"`    // number, in the order in which they were printed
	Operation string `json:"operation,omitempty"` // local name of the first element in the Body
	OneWay    bool   `json:"one_way"`             // no reply was expected; otherwise it was answered with status 202
	Received  int    `json:"received_octets"`     // envelope received
	// HTTP head of the message, if it is not the default one (negotiation.md)
	Head []byte `json:"head_base64,omitempty"`
	Body []byte `json:"body_base64"` // the message
}

// ServiceListener prints server-initiated messages.
type ServiceListener struct {
	Out             io.Writer
	Output, SaveDir string

	mu    sync.Mutex
	count int
	err   error
}

// Serve handles one message. It is called concurrently.
func (l *ServiceListener) Serve(ctx context.Context, x *streamer.Exchange) {
	m := x.Message()
	body, err := m.ReadAll(input.MaxMessage)
	if err != nil {
		return // it did not arrive whole, and the peer knows
	}
	l.print(ServerMessage{Operation: soap.Recognize(body).Operation.Local, OneWay: x.OneWay(), Received: len(body),
		Head: m.Head, Body: body})
	if x.OneWay() {
		return
	}
	if head, err := http1.AppendStatusLine(nil, "HTTP/1.1", http.StatusAccepted,
		http.StatusText(http.StatusAccepted)); err == nil {
		_ = x.Reply(ctx, &streamer.Message{Head: http1.AppendEnd(head)}) // the stream reports what fails
	}
}

func (l *ServiceListener) print(r ServerMessage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	r.Initiated = l.count
	if l.err == nil {
		l.err = l.write(r)
	}
}

func (l *ServiceListener) write(r ServerMessage) error {
	if l.SaveDir != "" {
		if err := os.WriteFile(filepath.Join(l.SaveDir, fmt.Sprintf("%06d-server-initiated.xml", r.Initiated)), r.Body,
			0o600); err != nil {
			return err
		}
	}
	switch l.Output {
	case "json":
		return printing.JSON(l.Out, r)
	case "xml":
		_, err := l.Out.Write(append(r.Body, '\n'))
		return err
	}
	operation := r.Operation
	if operation == "" {
		operation = "-"
	}
	_, err := fmt.Fprintf(l.Out, "%6d   <-  %-28s             %8d bytes\n", r.Initiated,
		printing.Shorten(operation, 28),
		r.Received)
	return err
}

// Heard is the number of messages that arrived; 0 without --listen.
func (l *ServiceListener) Heard() int {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// Wait waits until ctx ends, which ends the listening, or until there is no stream any more.
func (l *ServiceListener) Wait(ctx context.Context, sess *session.Session) error {
	err := sess.Wait(ctx)
	if ctx.Err() != nil {
		return l.failed()
	}
	return errors.Join(exit.With(exit.Partial, err, "what came until then is printed"), l.failed())
}

// failed returns why something could not be printed.
func (l *ServiceListener) failed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
