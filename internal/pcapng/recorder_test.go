package pcapng_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/internal/pcapng"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair is a TCP connection of its own on the loopback interface.
func pair(t *testing.T, network string) (dialed, accepted net.Conn) {
	t.Helper()
	l, err := net.Listen(network, "localhost:0")
	if err != nil {
		t.Skipf("no %s loopback: %v", network, err)
	}
	defer l.Close()
	got := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		assert.NoError(t, err)
		got <- c
	}()
	dialed, err = net.Dial(network, l.Addr().String())
	require.NoError(t, err)
	accepted = <-got
	t.Cleanup(func() { dialed.Close(); accepted.Close() })
	return dialed, accepted
}

// talk sends a long text and receives a short one.
func talk(t *testing.T, c, other net.Conn) {
	t.Helper()
	said := bytes.Repeat([]byte("0123456789abcdef"), 20000)
	heard := make(chan []byte, 1)
	go func() {
		b := make([]byte, len(said))
		_, err := io.ReadFull(other, b)
		assert.NoError(t, err)
		_, err = other.Write([]byte("yes"))
		assert.NoError(t, err)
		heard <- b
	}()
	_, err := c.Write(said)
	require.NoError(t, err)
	b := make([]byte, 3)
	_, err = io.ReadFull(c, b)
	require.NoError(t, err)
	assert.Equal(t, "yes", string(b))
	assert.Equal(t, said, <-heard)
}

type packet struct {
	tcp      layers.TCP
	src, dst string
	comments []string
}

func packets(t *testing.T, b []byte) []packet {
	t.Helper()
	r, err := pcapgo.NewNgReader(bytes.NewReader(b), pcapgo.DefaultNgReaderOptions)
	require.NoError(t, err)
	require.Equal(t, layers.LinkTypeRaw, r.LinkType())
	var ps []packet
	for {
		data, _, opts, err := r.ReadPacketDataWithOptions()
		if errors.Is(err, io.EOF) {
			return ps
		}
		require.NoError(t, err)
		p := gopacket.NewPacket(data, layers.LinkTypeRaw, gopacket.Default)
		require.Nil(t, p.ErrorLayer())
		tcp, ok := p.TransportLayer().(*layers.TCP)
		require.True(t, ok)
		require.NoError(t, tcp.SetNetworkLayerForChecksum(p.NetworkLayer()))
		cerr, sum := tcp.VerifyChecksum()
		require.NoError(t, cerr)
		require.True(t, sum.Valid)
		flow := p.NetworkLayer().NetworkFlow()
		ps = append(ps, packet{tcp: *tcp, src: net.JoinHostPort(flow.Src().String(), tcp.SrcPort.String()),
			dst: flow.Dst().String(), comments: opts.Comments})
	}
}

// follow checks that sequence and acknowledgement numbers of one connection are consistent, and
// returns the bytes each end sent.
func follow(t *testing.T, ps []packet) map[layers.TCPPort][]byte {
	t.Helper()
	next := map[layers.TCPPort]uint32{}
	sent := map[layers.TCPPort][]byte{}
	for i, p := range ps {
		from, to := p.tcp.SrcPort, p.tcp.DstPort
		if want, ok := next[from]; ok {
			require.Equal(t, want, p.tcp.Seq, "packet %d", i)
		}
		if p.tcp.ACK {
			require.Equal(t, next[to], p.tcp.Ack, "packet %d", i)
		}
		require.LessOrEqual(t, len(p.tcp.Payload), 16<<10)
		n := p.tcp.Seq + uint32(len(p.tcp.Payload))
		if p.tcp.SYN || p.tcp.FIN {
			n++
		}
		next[from] = n
		sent[from] = append(sent[from], p.tcp.Payload...)
	}
	return sent
}

func TestRecordsWhatBothEndsSay(t *testing.T) {
	for _, network := range []string{"tcp4", "tcp6", "pipe"} {
		for _, opened := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/opened=%v", network, opened), func(t *testing.T) {
				var c, other net.Conn
				if network == "pipe" {
					c, other = net.Pipe()
				} else {
					c, other = pair(t, network)
				}
				var file bytes.Buffer
				rec := pcapng.NewRecorder(&file, func() time.Time { return time.Unix(1e9, 1) })
				rc := rec.Conn
				if !opened {
					rc = rec.Accepted
				}
				recorded := rc(c)
				require.NoError(t, recorded.Comment(`{"session":1}`))
				talk(t, recorded, other)
				require.NoError(t, recorded.Close())
				require.NoError(t, other.Close())
				require.NoError(t, rec.Close())

				ps := packets(t, file.Bytes())
				sent := follow(t, ps)
				require.Len(t, sent, 2)
				assert.True(t, ps[0].tcp.SYN && !ps[0].tcp.ACK && ps[1].tcp.SYN && ps[1].tcp.ACK)
				local := ps[0].tcp.SrcPort
				if !opened {
					local = ps[0].tcp.DstPort
				}
				assert.Len(t, sent[local], 320000)
				assert.True(t, ps[len(ps)-2].tcp.FIN)
				assert.Equal(t, []string{`{"session":1}`}, ps[3].comments)
				assert.NotEmpty(t, ps[3].tcp.Payload)
				if network != "pipe" {
					addr := c.LocalAddr()
					if !opened {
						addr = c.RemoteAddr()
					}
					host, _, _ := net.SplitHostPort(ps[0].src)
					assert.Equal(t, addr.(*net.TCPAddr).IP.String(), host)
				}
			})
		}
	}
}

func TestListenerAndDialerRecordEveryConnection(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	var servers, clients bytes.Buffer
	srec, crec := pcapng.NewRecorder(&servers, nil), pcapng.NewRecorder(&clients, nil)
	rl := srec.Listener(l)
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 8 {
			c, err := rl.Accept()
			if !assert.NoError(t, err) {
				return
			}
			wg.Go(func() {
				_, _ = io.Copy(c, c)
				c.Close()
			})
		}
	})
	dial := crec.DialContext((&net.Dialer{}).DialContext)
	for range 8 {
		wg.Go(func() {
			c, err := dial(context.Background(), "tcp4", l.Addr().String())
			if !assert.NoError(t, err) {
				return
			}
			_, err = c.Write([]byte("ping"))
			assert.NoError(t, err)
			assert.NoError(t, c.(*pcapng.RecordedConn).CloseWrite())
			b, err := io.ReadAll(c)
			assert.NoError(t, err)
			assert.Equal(t, "ping", string(b))
			assert.NoError(t, c.Close())
		})
	}
	wg.Wait()
	require.NoError(t, rl.Close())
	for _, file := range []*bytes.Buffer{&servers, &clients} {
		syn, fin, payload := 0, 0, 0
		for _, p := range packets(t, file.Bytes()) {
			if p.tcp.SYN {
				syn++
			}
			if p.tcp.FIN {
				fin++
			}
			payload += len(p.tcp.Payload)
		}
		assert.Equal(t, []int{16, 16, 8 * 8}, []int{syn, fin, payload})
	}
	_, err = crec.DialContext(func(context.Context, string, string) (net.Conn, error) {
		return nil, io.EOF
	})(context.Background(), "tcp", "x")
	assert.ErrorIs(t, err, io.EOF)
}

// fullDisk accepts a number of bytes and no more.
type fullDisk struct{ room int }

func (d *fullDisk) Write(p []byte) (int, error) {
	n := min(d.room, len(p))
	d.room -= n
	if n < len(p) {
		return n, errors.New("no space left")
	}
	return n, nil
}

func TestFullDiskDoesNotDisturb(t *testing.T) {
	for _, room := range []int{0, 10, 300, 50000} {
		c, other := net.Pipe()
		rec := pcapng.NewRecorder(&fullDisk{room}, nil)
		recorded := rec.Conn(c)
		talk(t, recorded, other)
		require.NoError(t, recorded.Close())
		require.NoError(t, other.Close())
		assert.ErrorIs(t, rec.Err(), &pcapng.Error{Code: pcapng.WriteFailed})
		var e *pcapng.Error
		require.ErrorAs(t, rec.Close(), &e)
		assert.Equal(t, int64(room), e.At)
	}
}

func TestAbortTimeoutAndClosedRecorder(t *testing.T) {
	c, other := net.Pipe()
	var file bytes.Buffer
	rec := pcapng.NewRecorder(&file, nil)
	recorded := rec.Conn(c)
	assert.ErrorIs(t, recorded.Comment(strings.Repeat("x", 1<<16)), &pcapng.Error{Code: pcapng.CommentTooLong})
	require.NoError(t, recorded.Comment("kept"))
	assert.ErrorIs(t, recorded.CloseWrite(), errors.ErrUnsupported)
	assert.Same(t, c, recorded.NetConn())

	require.NoError(t, recorded.SetReadDeadline(time.Unix(1, 0)))
	_, err := recorded.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, recorded.Abort())
	require.NoError(t, other.Close())
	ps := packets(t, file.Bytes())
	require.Len(t, ps, 4)
	assert.True(t, ps[3].tcp.RST)
	assert.Equal(t, []string{"kept"}, ps[3].comments)

	require.NoError(t, rec.Close())
	size := file.Len()
	c, other = net.Pipe()
	recorded = rec.Conn(c)
	talk(t, recorded, other)
	require.NoError(t, recorded.Close())
	require.NoError(t, other.Close())
	assert.Equal(t, size, file.Len())
	assert.NoError(t, rec.Err())
}

func TestFailedWriteEndsItsDirection(t *testing.T) {
	c, other := net.Pipe()
	var file bytes.Buffer
	rec := pcapng.NewRecorder(&file, nil)
	recorded := rec.Conn(c)
	require.NoError(t, other.Close())
	_, err := recorded.Write([]byte("lost"))
	require.ErrorIs(t, err, io.ErrClosedPipe)
	_, _ = recorded.Write([]byte("lost"))
	require.NoError(t, recorded.Close())
	ps := packets(t, file.Bytes())
	require.Len(t, ps, 4, "nothing of it was written")
	assert.True(t, ps[3].tcp.RST)
}

// half is a connection that answers in the middle of a write, and then writes half of it.
type half struct {
	net.Conn
	answered chan struct{}
	answer   io.Reader
}

func (h half) Write(p []byte) (int, error) {
	<-h.answered
	return len(p) / 2, io.ErrShortWrite
}

func (h half) Read(p []byte) (int, error) { return h.answer.Read(p) }

// TestAnswersComeBehindWhatIsWritten: what is read while a write is in progress comes after it in
// the recording, and the end of the direction after both.
func TestAnswersComeBehindWhatIsWritten(t *testing.T) {
	c, other := net.Pipe()
	var file bytes.Buffer
	conn := half{c, make(chan struct{}), strings.NewReader("yes")}
	recorded := pcapng.NewRecorder(&file, nil).Conn(conn)
	wrote := make(chan error, 1)
	go func() {
		_, err := recorded.Write([]byte("really"))
		wrote <- err
	}()
	require.Eventually(t, recorded.Writing, time.Minute, time.Millisecond)
	_, err := recorded.Read(make([]byte, 10))
	require.NoError(t, err)
	_, err = recorded.Read(make([]byte, 10))
	require.ErrorIs(t, err, io.EOF)
	close(conn.answered)
	require.ErrorIs(t, <-wrote, io.ErrShortWrite)
	require.NoError(t, recorded.Close())
	require.NoError(t, other.Close())
	ps := packets(t, file.Bytes())
	require.Len(t, ps, 6)
	assert.Equal(t, "really", string(ps[3].tcp.Payload))
	assert.Equal(t, "yes", string(ps[4].tcp.Payload))
	assert.True(t, ps[5].tcp.RST)
	assert.Equal(t, ps[3].tcp.Seq+3, ps[5].tcp.Seq, "half of it was written")
}
