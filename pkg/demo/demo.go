// Package demo is the tour of hhfr on one machine: a server, a client and real messages between them.
package demo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hhfr/hhfr/pkg/codec/binary"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/peer"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
	messages "github.com/hhfr/hhfr/testdata/soap"
)

// Message is one that the tour sends.
type Message struct {
	Name string
	Body []byte
}

// Builtin are the messages the tour has with it, modelled on ONVIF, CWMP and EWS.
func Builtin() ([]Message, error) {
	return Read(messages.Files, func(name string) bool {
		return strings.HasPrefix(name, "onvif-") || strings.HasPrefix(name, "cwmp-") || strings.HasPrefix(name, "ews-")
	})
}

// Read reads the files that keep takes, below the root of a file system, by name.
func Read(files fs.FS, keep func(path string) bool) (list []Message, err error) {
	err = fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !keep(path) {
			return err
		}
		body, err := fs.ReadFile(files, path)
		list = append(list, Message{Name: path, Body: body})
		return err
	})
	if err == nil && len(list) == 0 {
		err = errors.New("no messages to send")
	}
	return list, err
}

// Row is what one message cost. Octets of HHFR are those of its data frames there and back, framing included; Shapes those of the shapes sent for it the first time.
type Row struct {
	Name   string `json:"name"`               // of the message
	SOAP   int64  `json:"envelope_octets"`    // envelopes, there and back
	Heads  int64  `json:"http_head_octets"`   // heads that plain SOAP would add, there and back
	Shapes int64  `json:"shape_octets"`       // shapes sent for it the first time
	First  int64  `json:"hhfr_first_octets"`  // data frames the first time, there and back
	Next   int64  `json:"hhfr_second_octets"` // data frames the second time, there and back
	Same   bool   `json:"same"`               // what came back is what was sent, both times
}

// Ratio is how many times smaller the second time is than plain SOAP with its heads.
func (r Row) Ratio() float64 {
	if r.Next == 0 {
		return 0
	}
	return float64(r.SOAP+r.Heads) / float64(r.Next)
}

// Report is what the tour found.
type Report struct {
	Rows []Row
	// Agreed are the facts of the session.
	Agreed negotiate.Facts
	// Stream is what the stream carried.
	Stream streamer.Stats
}

// Same tells whether every message came back as it was sent.
func (r *Report) Same() bool {
	return !slices.ContainsFunc(r.Rows, func(row Row) bool { return !row.Same })
}

// Run starts a server and a client on loopback, each with a store of its own, sends each message twice to the echo service over one negotiated stream, and compares what comes back.
// each, if given, hears of every row as it is done.
func Run(ctx context.Context, list []Message, each func(Row)) (_ *Report, err error) {
	server, err := startServer(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	store := memory.New(memory.Config{})
	defer func() { _ = store.Close() }()
	session, err := negotiate.Dial(ctx, server.URL(peer.EchoPath), negotiate.Config{
		Transports: map[string]streamer.Transport{"tcp": tcp.Transport{}}, Store: store, Coders: coders(store), RequireHHFR: true,
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	r := &Report{Agreed: *session.Agreed().Facts}
	for _, m := range list {
		row, err := trip(ctx, session, m)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
		if each != nil {
			each(row)
		}
		r.Rows = append(r.Rows, row)
	}
	r.Stream = session.Stream().Stats()
	return r, nil
}

func coders(store ctxstore.Store) negotiate.Coders {
	return negotiate.BookCoders(binary.NewBook(ctxstore.Shapes{Store: store}))
}

// startServer serves the echo service on free ports of the loopback, with a store of its own.
func startServer(ctx context.Context) (*peer.Server, error) {
	services, err := peer.NewServices(peer.Echo())
	if err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	http, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	streams, err := tcp.Transport{}.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, http.Close())
	}
	store := memory.New(memory.Config{})
	return peer.Start(peer.Config{HTTP: http, Streams: map[string]net.Listener{"tcp": streams}, Services: services, Store: store, Coders: coders(store)})
}

// trip sends a message twice and counts.
func trip(ctx context.Context, session *negotiate.Session, m Message) (Row, error) {
	row := Row{Name: strings.TrimSuffix(filepath.Base(m.Name), ".xml"), Same: true, SOAP: 2 * int64(len(m.Body))}
	head, err := peer.RequestHead(peer.EchoPath, m.Body, "", nil)
	if err != nil {
		return row, err
	}
	want := sha256.Sum256(m.Body)
	for i, octets := range []*int64{&row.First, &row.Next} {
		before := session.Stream().Stats()
		reply, err := session.Call(ctx, &streamer.Message{Head: head, Body: bytes.NewReader(m.Body)})
		if err != nil {
			return row, err
		}
		body, err := reply.ReadAll(1 << 30)
		if err != nil {
			return row, err
		}
		row.Same = row.Same && sha256.Sum256(body) == want
		after := session.Stream().Stats()
		*octets = after.Sent.Data.Octets - before.Sent.Data.Octets + after.Received.Data.Octets - before.Received.Data.Octets
		row.Shapes += after.Sent.Shape.Octets - before.Sent.Shape.Octets + after.Received.Shape.Octets - before.Received.Shape.Octets
		if i == 0 {
			replyHead := reply.Head
			if replyHead == nil {
				replyHead = negotiate.DefaultReplyHead()
			}
			row.Heads = int64(len(head) + len(replyHead))
		}
	}
	return row, nil
}
