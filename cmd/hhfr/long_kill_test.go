package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/network"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/results"
	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/directory"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// digits are the body of a long message: hexadecimal digits that depend on their place.
type digits struct{}

func (digits) ReadAt(p []byte, at int64) (int, error) {
	const block = 4096
	for i := 0; i < len(p); {
		number := (at + int64(i)) / block
		random := rand.New(rand.NewPCG(uint64(number), 0))
		var raw [block / 2]byte
		for j := range raw {
			raw[j] = byte(random.Uint32())
		}
		i += copy(p[i:], hex.AppendEncode(nil, raw[:])[at+int64(i)-number*block:])
	}
	return len(p), nil
}

// longService appends the digest of each message to the effect of its sequence, and replies with
// how many there were, and that digest.
func longService() peer.Service {
	return peer.Service{Path: "/long", Transactional: true, Handler: http.HandlerFunc(func(
		w http.ResponseWriter, r *http.Request,
	) {
		tx := responder.TxOf(r.Context())
		h := sha256.New()
		if _, err := io.Copy(h, r.Body); err != nil || tx == nil {
			panic(http.ErrAbortHandler) // it comes again
		}
		tx.Set(append(bytes.Clone(tx.Value()), h.Sum(nil)...))
		_, _ = fmt.Fprintf(w, "%d %x", len(tx.Value())/sha256.Size, h.Sum(nil))
	})}
}

// longServer serves long messages: the arguments are the addresses of HTTP and of streams over UDP,
// and the folder of its store.
func longServer() {
	exitIf(func() error {
		store, err := directory.Open(os.Args[3], directory.Config{})
		if err != nil {
			return err
		}
		web, err := net.Listen("tcp", os.Args[1])
		if err != nil {
			return err
		}
		socket, err := net.ListenPacket("udp", os.Args[2])
		if err != nil {
			return err
		}
		datagrams, err := udp.Listen(socket, udp.Config{})
		if err != nil {
			return err
		}
		services, err := peer.NewServices(longService())
		if err != nil {
			return err
		}
		server, err := peer.Start(peer.Config{HTTP: web, Streams: map[string]net.Listener{"udp": datagrams},
			Services: services, Store: store, Coders: coders.OfBook(binary.NewBook(ctxstore.Shapes{Store: store}))})
		if err != nil {
			return err
		}
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends
		return server.Close()
	}())
}

// longClient sends one long message, or goes on with it, and prints the reply: the arguments are
// the URL, the folder of its store, the transport, and the length.
func longClient() {
	exitIf(func() error {
		ctx := context.Background()
		store, err := directory.Open(os.Args[2], directory.Config{})
		if err != nil {
			return err
		}
		over, err := network.Open("", os.Args[3])
		if err != nil {
			return err
		}
		size, err := strconv.ParseInt(os.Args[4], 10, 64)
		if err != nil {
			return err
		}
		replies := make(chan *streamer.Message, 1)
		sess, err := session.Dial(ctx, os.Args[1], session.Config{
			HTTPClient: http.DefaultClient, Transports: over.Transports(nil), Store: store,
			Coders:    coders.OfBook(binary.NewBook(ctxstore.Shapes{Store: store})),
			Assurance: wsrm.ExactlyOnce, Ordered: true, Resume: true, Reconnect: 5 * time.Minute, RememberFor: -1,
			LateReply: func(_ uint64, m *streamer.Message, err error) {
				if err == nil && m.Body != nil {
					replies <- m
				}
			},
		})
		if err != nil {
			return err
		}
		reply, err := sess.Call(ctx, &streamer.Message{Body: io.NewSectionReader(digits{}, 0, size)})
		switch {
		case results.IsAccepted(err):
			if err = sess.Finish(ctx); err == nil {
				reply = <-replies
			}
		case err == nil:
			err = sess.Finish(ctx)
		}
		if err != nil {
			return err
		}
		text, err := reply.ReadAll(1000)
		if err != nil {
			return err
		}
		if err := errors.Join(sess.EndRun(ctx), sess.Close()); err != nil {
			return err
		}
		fmt.Println(string(text))
		return nil
	}())
}

func exitIf(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exit.Failed)
	}
	os.Exit(exit.Done)
}

// longRun is one long message, exactly once, while both processes are killed, in turn, as it comes.
type longRun struct {
	transport string
	size      int64
	kills     int   // of each process
	memory    int64 // bound of each process, in bytes, without mapped files; 0: it is not looked at
}

type longWorld struct {
	longRun
	t       *testing.T
	dir     string
	web     string
	streams string
	most    int64
}

// program is a process that prints a line when it is ready, or done.
type program struct {
	*exec.Cmd
	out  *bufio.Reader
	errs bytes.Buffer
}

func (w *longWorld) start(name string, args ...string) *program {
	p := &program{Cmd: exec.CommandContext(w.t.Context(), name, args...)}
	p.Stderr = &p.errs
	out, err := p.StdoutPipe()
	require.NoError(w.t, err)
	_, err = p.StdinPipe()
	require.NoError(w.t, err)
	require.NoError(w.t, p.Start())
	w.t.Cleanup(p.end)
	p.out = bufio.NewReader(out)
	return p
}

func (p *program) end() {
	_ = p.Process.Kill()
	_ = p.Wait()
}

func (w *longWorld) serve() *program {
	p := w.start("longserver", w.web, w.streams, filepath.Join(w.dir, "server"))
	line, err := p.out.ReadString('\n')
	require.NoError(w.t, err, "%s %s", line, &p.errs)
	return p
}

func (w *longWorld) send() (p *program, said chan string) {
	p = w.start("longclient", "http://"+w.web+"/long", filepath.Join(w.dir, "client"), w.transport,
		strconv.FormatInt(w.size, 10))
	said = make(chan string, 1)
	go func() {
		line, _ := p.out.ReadString('\n')
		said <- line
	}()
	return p, said
}

// pieces is how many entries of long messages a store has. An entry may go while it is read.
func (w *longWorld) pieces(of string) (n int) {
	store, err := directory.Open(filepath.Join(w.dir, of), directory.Config{ReadOnly: true})
	require.NoError(w.t, err)
	defer func() { _ = store.Close() }()
	for info, err := range store.List(w.t.Context(), "urn:hhfr:piece:") {
		if err == nil && info.URI != "" {
			n++
		}
	}
	return n
}

// look notes the memory that a process has for itself.
func (w *longWorld) look(p *program) { w.most = max(w.most, anonymous(p.Process.Pid)) }

// anonymous is the memory that a process has for itself, in bytes, without mapped files; 0: the
// system does not tell, or the process has ended.
func anonymous(pid int) (n int64) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, text, found := strings.Cut(string(status), "RssAnon:")
	if err != nil || !found {
		return 0
	}
	if _, err = fmt.Sscan(text, &n); err != nil {
		return 0
	}
	return n << 10
}

// run returns how many processes were killed before the message was done.
func (r longRun) run(t *testing.T) (killed kills) {
	w := &longWorld{longRun: r, t: t, dir: t.TempDir(), web: shared.Addr(t), streams: shared.Addr(t)}
	server := w.serve()
	client, said := w.send()
	pieces := int(r.size / (512 << 10))
	reply := ""
	for reply == "" {
		select {
		case reply = <-said:
			require.NotEmpty(t, reply, "%s", &client.errs)
			continue
		default:
		}
		w.look(server)
		w.look(client)
		if killed.all() == 2*r.kills || w.pieces("server") < (killed.all()+1)*pieces/(2*r.kills+1) {
			continue
		}
		if killed.all()%2 == 0 {
			server.end()
			server = w.serve()
			killed.server++
			continue
		}
		client.end()
		<-said
		client, said = w.send()
		killed.client++
	}
	require.NoError(t, client.Wait(), "%s", &client.errs)
	h := sha256.New()
	_, err := io.Copy(h, io.NewSectionReader(digits{}, 0, r.size))
	require.NoError(t, err)
	assert.Equal(t, fmt.Sprintf("1 %x\n", h.Sum(nil)), reply, "whole, and once")
	server.end()
	w.check(h.Sum(nil))
	t.Logf("%d bytes over %s: killed %+v, at most %d MB", r.size, r.transport, killed, w.most>>20)
	if r.memory > 0 {
		assert.Less(t, w.most, r.memory)
	}
	return killed
}

// check looks at what is left in the stores.
func (w *longWorld) check(digest []byte) {
	assert.Zero(w.t, w.pieces("client"), "of the client")
	store, err := directory.Open(filepath.Join(w.dir, "server"), directory.Config{ReadOnly: true})
	require.NoError(w.t, err)
	defer func() { _ = store.Close() }()
	for info, err := range store.List(w.t.Context(), ctxstore.SequencePrefix) {
		require.NoError(w.t, err)
		entry, err := store.Get(w.t.Context(), info.URI)
		require.NoError(w.t, err)
		effect, err := wsrm.EffectOf(entry.Value)
		require.NoError(w.t, err)
		assert.Equal(w.t, digest, effect)
	}
}

// A message of 12 MB is handled once, and is whole, though both processes are killed while it
// comes. The long form is TestSoakLongMessage.
func TestLongMessageOverKills(t *testing.T) {
	for _, transport := range []string{"tcp", "udp"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			killed := longRun{transport: transport, size: 12_000_000, kills: 1}.run(t)
			assert.Positive(t, killed.server)
			assert.Positive(t, killed.client)
		})
	}
}
