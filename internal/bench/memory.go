package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"github.com/hhfr/hhfr"
	"github.com/hhfr/hhfr/internal/experiment"
	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/pkg/soap"
)

// appMemory is what applications have on the papers' phone, of 32 MB.
const appMemory = 24_000_000

// arraySizes are arrays that phones sent, and what they could not.
var arraySizes = []int{1000, 10_000, 100_000}

// memory adds the memory of messages of floats. Over a stream their text becomes content as it is
// made of the array (first-call); in plain SOAP all of it is made before, as its length comes first
// (soap-kept). Only what is on the heap counts; if the server is in this process, that of both
// peers.
func (r *Results) memory(ctx context.Context, cfg *SessionConfig) error {
	url, end, err := cfg.echoService(ctx)
	if err != nil {
		return err
	}
	client, err := hhfr.Dial(ctx, url, nil)
	if err != nil {
		return errors.Join(err, end())
	}
	transport := &http.Transport{}
	err = r.arrays(ctx, cfg, map[SessionWay]func([]float32) error{
		FirstCall: func(array []float32) error { return callWith(ctx, client, array) },
		SOAPKept:  func(array []float32) error { return postWhole(ctx, transport, url, array) },
	})
	transport.CloseIdleConnections()
	return errors.Join(err, client.Close(), end())
}

// arrays measures each size, and searches the largest. A small message by each is sent before.
func (r *Results) arrays(ctx context.Context, cfg *SessionConfig, send map[SessionWay]func([]float32) error) error {
	for _, way := range []SessionWay{FirstCall, SOAPKept} {
		if err := send[way](floats(arraySizes[0])); err != nil {
			return fmt.Errorf("%s: %w", way, err)
		}
		of := func(size int) (row experiment.MemoryRow, err error) {
			row = experiment.MemoryRow{Way: string(way), Size: size, Peer: r.Peer}
			row.PeakOctets, err = peakOf(func() error { return send[way](floats(size)) })
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return row, err
		}
		for _, size := range arraySizes {
			row, err := of(size)
			if err == nil {
				err = r.addMemory(cfg, row)
			}
			if err != nil {
				return fmt.Errorf("%s of %d floats: %w", way, size, err)
			}
		}
		largest, err := largestArray(of)
		if err == nil {
			err = r.addMemory(cfg, largest)
		}
		if err != nil {
			return fmt.Errorf("%s of the largest array: %w", way, err)
		}
	}
	return nil
}

func (r *Results) addMemory(cfg *SessionConfig, row experiment.MemoryRow) error {
	r.Memory = append(r.Memory, row)
	if cfg.EachMemory == nil {
		return nil
	}
	return cfg.EachMemory(row)
}

// largestArray searches the largest array whose message takes no more than applications have. What
// a message takes grows with its size, so that a few proportions lead there.
func largestArray(of func(size int) (experiment.MemoryRow, error)) (largest experiment.MemoryRow, err error) {
	const steps, close = 8, 0.97
	size := arraySizes[len(arraySizes)-1]
	for range steps {
		row, err := of(size)
		if err != nil {
			return row, err
		}
		share := float64(row.PeakOctets) / appMemory
		if share <= 1 && row.Size > largest.Size {
			largest = row
			largest.LimitOctets = appMemory
		}
		if share > close && share <= 1 {
			break
		}
		size = int(float64(size) * (1 + close) / 2 / share)
	}
	return largest, nil
}

// echoService is the URL of the service echo at the peer, or of one in this process until end.
func (cfg *SessionConfig) echoService(ctx context.Context) (url string, end func() error, err error) {
	if cfg.at != nil {
		return cfg.at.url + peer.EchoPath, cfg.at.close, nil
	}
	services, err := peer.NewServices(peer.Echo())
	if err != nil {
		return "", nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", host+":0")
	if err != nil {
		return "", nil, err
	}
	server := &hhfr.Server{Handler: services}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	return "http://" + l.Addr().String() + peer.EchoPath, func() error {
		return errors.Join(server.Close(), <-ended)
	}, nil
}

// callWith sends a message over a stream as it is made.
func callWith(ctx context.Context, client *hhfr.Client, array []float32) error {
	reply, err := client.Call(ctx, &hhfr.Request{Body: textOf(array)})
	if err != nil {
		return err
	}
	return errors.Join(isEcho(reply.Body, array), reply.Body.Close())
}

// postWhole sends a message in plain SOAP, with its length.
func postWhole(ctx context.Context, by *http.Transport, url string, array []float32) error {
	length, err := io.Copy(io.Discard, textOf(array))
	if err != nil {
		return err
	}
	message := make([]byte, length)
	if _, err := io.ReadFull(textOf(array), message); err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(message))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "text/xml; charset=utf-8")
	response, err := by.RoundTrip(request)
	if err != nil {
		return err
	}
	return errors.Join(isEcho(response.Body, array), response.Body.Close())
}

// isEcho reads a reply, and returns an error if it is not what was sent.
func isEcho(reply io.Reader, array []float32) error {
	sent := textOf(array)
	var a, b [4096]byte
	for {
		n, ended := io.ReadFull(sent, a[:])
		m, err := io.ReadFull(reply, b[:])
		switch {
		case !bytes.Equal(a[:n], b[:m]):
			return fmt.Errorf("not what was sent: %.200q (%w)", b[:m], err)
		case ended != nil:
			return nil
		}
	}
}

// floats is an array, the same each time.
func floats(size int) []float32 {
	random, array := rand.New(rand.NewPCG(1, 1)), make([]float32, size)
	for i := range array {
		array[i] = random.Float32()
	}
	return array
}

// textOf is a message of an array, which is made as it is read.
func textOf(array []float32) io.Reader {
	before, after, _ := strings.Cut(`<soap:Envelope xmlns:soap="`+soap.V11.Namespace()+`"><soap:Body><sum xmlns="`+
		peer.Namespace+`">|</sum></soap:Body></soap:Envelope>`, "|")
	return io.MultiReader(strings.NewReader(before), &floatItems{rest: array}, strings.NewReader(after))
}

// floatItems is the text of floats.
type floatItems struct {
	rest    []float32
	item    [64]byte
	pending []byte // of the item
}

// Read implements [io.Reader].
func (f *floatItems) Read(p []byte) (n int, err error) {
	for n < len(p) && len(f.pending)+len(f.rest) > 0 {
		if len(f.pending) == 0 {
			text := strconv.AppendFloat(append(f.item[:0], "<item>"...), float64(f.rest[0]), 'g', -1, 32)
			f.pending, f.rest = append(text, "</item>"...), f.rest[1:]
		}
		copied := copy(p[n:], f.pending)
		n, f.pending = n+copied, f.pending[copied:]
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// peakOf is what the heap has more than before while do runs, at most, in bytes. What is no longer
// used is collected whenever the heap has grown by a twentieth, so that little of it counts.
func peakOf(do func() error) (octets int64, err error) {
	defer debug.SetGCPercent(debug.SetGCPercent(5))
	runtime.GC()
	before := heap()
	stop, most := make(chan struct{}), make(chan int64)
	go func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for top := before; ; top = max(top, heap()) {
			select {
			case <-stop:
				most <- top
				return
			case <-tick.C:
			}
		}
	}()
	err = do()
	last := heap()
	close(stop)
	return max(<-most, last) - before, err
}

// heap is how many bytes are on it.
func heap() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
