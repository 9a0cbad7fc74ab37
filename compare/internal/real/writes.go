package real

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Ways of programs to write the same call.
const (
	oneWrite = iota
	twoWrites
	lateBody
	drips
	inChunks
	writings
)

var writingNames = [writings]string{"one write", "head and body apart", "a body 100 ms later", "100 bytes each 20 ms",
	"in chunks"}

const (
	// writingCalls are the calls of a run, and Runs how many there are of each way, idle and under
	// load.
	writingCalls = 5
	Runs         = 20
	// lateBy and dripPause are below the times that docs/proxy.md, section 1, states for bodies of
	// a stated length.
	lateBy, dripPause, drip = 100 * time.Millisecond, 20 * time.Millisecond, 100
	// burners keep the processors busy, and so do runs at once.
	burners, atOnce = 4, 4
)

// Writing is what the same calls take on the link, by how they are written: the largest of all
// runs, in bytes of payload.
type Writing struct {
	Name   string `json:"name"`
	Idle   int64  `json:"idle"`
	Loaded int64  `json:"loaded"`
}

// measureWritings has requests and replies written in each way.
func (s *stacks) measureWritings(ctx context.Context) (rows []Writing, err error) {
	for how, name := range writingNames {
		rows = append(rows, Writing{Name: name})
		for _, loaded := range []bool{false, true} {
			largest, err := s.largest(ctx, how, loaded)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if loaded {
				rows[how].Loaded = largest
			} else {
				rows[how].Idle = largest
			}
		}
	}
	return rows, nil
}

// largest is that of Runs.
func (s *stacks) largest(ctx context.Context, how int, loaded bool) (most int64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var burning, running sync.WaitGroup
	if loaded {
		for range burners {
			burning.Go(func() {
				for n := 0; ctx.Err() == nil; n++ { // takes time
				}
			})
		}
	}
	var mu sync.Mutex
	runs := make(chan struct{}, Runs)
	for range Runs {
		runs <- struct{}{}
	}
	close(runs)
	for range atOnce {
		running.Go(func() {
			for range runs {
				took, failed := s.written(ctx, how)
				mu.Lock()
				most, err = max(most, took), errors.Join(err, failed)
				mu.Unlock()
			}
		})
	}
	running.Wait()
	cancel()
	burning.Wait()
	return most, err
}

// written is what the calls of one run take.
func (s *stacks) written(ctx context.Context, how int) (int64, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	server := &writer{how: how, listen: l}
	var serving sync.WaitGroup
	serving.Go(server.serve)
	o, err := s.openPair(ctx, l.Addr().String(), "--mode", "first-call")
	t, err := through(ctx, o, err, func(host string) error {
		return callWriter(ctx, host, conversation(Readings, writingCalls), how)
	})
	err = errors.Join(err, l.Close())
	serving.Wait()
	return t.Payload, err
}

// callWriter makes calls on one connection.
func callWriter(ctx context.Context, host string, calls [][]record, how int) error {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", host)
	if err != nil {
		return err
	}
	defer c.Close()
	replies := bufio.NewReader(c)
	for _, call := range calls {
		if err := write(c, "POST /records HTTP/1.1\r\nHost: device\r\n", envelopeOf("records", call), how); err != nil {
			return err
		}
		r, err := http.ReadResponse(replies, nil)
		if err != nil {
			return err
		}
		got, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		if want := envelopeOf("recordsResponse", call); string(got) != want {
			return fmt.Errorf("another reply: %s", got)
		}
	}
	return nil
}

func envelopeOf(operation string, call []record) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>`+
		`<%s xmlns="urn:hhfr:peer:1">`, operation)
	for _, r := range call {
		fmt.Fprintf(&b, "<record><text>%s</text><number>%d</number><flag>%t</flag></record>", r.text, r.number, r.flag)
	}
	fmt.Fprintf(&b, "</%s></s:Body></s:Envelope>", operation)
	return b.String()
}

// write writes a message with a beginning of its head.
func write(w io.Writer, start, body string, how int) error {
	head := start + "Content-Type: text/xml; charset=utf-8\r\n"
	if how == inChunks {
		parts := []string{head + "Transfer-Encoding: chunked\r\n\r\n"}
		for rest := body; rest != ""; {
			n := min(len(rest), drip)
			parts = append(parts, fmt.Sprintf("%x\r\n%s\r\n", n, rest[:n]))
			rest = rest[n:]
		}
		return writeAll(w, 0, append(parts, "0\r\n\r\n")...)
	}
	head += fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body))
	switch how {
	case twoWrites:
		return writeAll(w, 0, head, body)
	case lateBody:
		return writeAll(w, lateBy, head, body)
	case drips:
		var parts []string
		for rest := head + body; rest != ""; {
			n := min(len(rest), drip)
			parts = append(parts, rest[:n])
			rest = rest[n:]
		}
		return writeAll(w, dripPause, parts...)
	}
	return writeAll(w, 0, head+body)
}

func writeAll(w io.Writer, pause time.Duration, parts ...string) error {
	for i, part := range parts {
		if i > 0 {
			time.Sleep(pause)
		}
		if _, err := io.WriteString(w, part); err != nil {
			return err
		}
	}
	return nil
}

// writer is a server that writes its replies in a way.
type writer struct {
	how    int
	listen net.Listener
}

func (s *writer) serve() {
	var wait sync.WaitGroup
	defer wait.Wait()
	for {
		c, err := s.listen.Accept()
		if err != nil {
			return
		}
		wait.Go(func() {
			defer c.Close()
			_ = s.answer(c) // the client says what it lacks
		})
	}
}

func (s *writer) answer(c net.Conn) error {
	for requests := bufio.NewReader(c); ; {
		r, err := http.ReadRequest(requests)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		if r.Method == http.MethodOptions { // the far half asks
			if _, err := io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n"); err != nil {
				return err
			}
			continue
		}
		reply := strings.ReplaceAll(string(body), "records ", "recordsResponse ")
		reply = strings.ReplaceAll(reply, "records>", "recordsResponse>")
		if err := write(c, "HTTP/1.1 200 OK\r\n", reply, s.how); err != nil {
			return err
		}
	}
}
