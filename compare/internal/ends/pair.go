package ends

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr"
	"github.com/hhfr/hhfr/pkg/clock"
)

// The proxies, and the server of long bodies, by their names. Each is a process.
const (
	hhfrProxy    = "hhfr proxy"
	reverseProxy = "httputil.ReverseProxy"
	sinkServer   = "hhfr.Server"
)

// The ways from client to server in the report.
const (
	Direct      = "direct"
	Nginx       = "nginx, one hop"
	ReversePair = "two httputil.ReverseProxy"
	HHFRPair    = "hhfr proxy, near and far"
	HHFRClients = "hhfr.Client to hhfr.Server"
)

// Connections are how many clients call at a time.
var Connections = []int{1, 16, 64}

// PairRow is what the proxies between clients and a server took per call.
type PairRow struct {
	Way         string  `json:"way"`
	Connections int     `json:"connections"`
	Processor   float64 `json:"processor_ns"` // of both proxies
	P50         float64 `json:"p50_ns"`       // of a call
}

// LongRow is a long body on its way to a server.
type LongRow struct {
	Way     string  `json:"way"`
	Body    string  `json:"body"`
	Chunked bool    `json:"chunked"`
	Octets  int     `json:"octets"`
	Time    float64 `json:"time_ns"`
	// Most is the largest resident memory that a proxy had, in bytes.
	Most float64 `json:"resident_most"`
}

// ServeProxy is the process of a proxy in front of upstream, or that of [sinkServer]. Its first
// answer is its address; the others are the processor time so far.
func ServeProxy(ctx context.Context, name, upstream string, in io.Reader, out io.Writer) error {
	to, err := url.Parse(upstream)
	if err != nil {
		return err
	}
	var addr string
	var end func() error
	switch name {
	case reverseProxy:
		p := &httputil.ReverseProxy{
			Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to) },
			Transport: &http.Transport{MaxIdleConnsPerHost: slices.Max(Connections), DisableCompression: true},
		}
		addr, end, err = serveHTTP(ctx, p)
	case sinkServer:
		addr, end, err = serveSink(ctx)
	default:
		return fmt.Errorf("no proxy %q", name)
	}
	if err != nil {
		return err
	}
	return errors.Join(answerAll(in, out, func(command) (answer, error) {
		return answer{Addr: "http://" + addr, sample: sample{Processor: float64(clock.Processor())}}, nil
	}), end())
}

// sink reads the body to its end.
var sink = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write([]byte("<a>done</a>")) // the client detects it
})

func serveSink(ctx context.Context) (addr string, end func() error, err error) {
	l, err := loopback(ctx)
	if err != nil {
		return "", nil, err
	}
	server := &hhfr.Server{Handler: sink}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	return l.Addr().String(), func() error { return errors.Join(server.Close(), <-done) }, nil
}

// hop is one running proxy.
type hop interface {
	processor() (float64, error) // what it has used so far
	most() float64               // the largest resident memory that it had
	stop() error
}

// route is a way from client to server, and the proxies on it.
type route struct {
	way     string
	url     string // without a path
	proxies []hop
}

// PairConfig says how long is measured, and with what.
type PairConfig struct {
	Config
	Messages [][]byte
	// Long are long bodies by name.
	Long []Long
}

// Long is a long body.
type Long struct {
	Name string
	Body []byte
}

// MeasurePair measures calls and long bodies through pairs of proxies.
func MeasurePair(ctx context.Context, cfg PairConfig) (rows []PairRow, long []LongRow, err error) {
	addr, stop, err := serveHTTP(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/sink" {
			sink(w, r)
			return
		}
		echo(w, r)
	}))
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	server := "http://" + addr
	routes := []route{{way: Direct, url: server}}
	defer func() { err = errors.Join(err, stopAll(routes)) }()
	switch n, there, err := startNginx(ctx, addr); {
	case err != nil:
		return nil, nil, err
	case n != nil:
		routes = append(routes, route{Nginx, "http://" + there, []hop{n}})
	}
	pairs, err := startPairs(ctx, cfg, server)
	if routes = append(routes, pairs...); err != nil {
		return nil, nil, err
	}
	if rows, err = callThrough(ctx, cfg, routes); err != nil {
		return nil, nil, err
	}
	long, err = sendLong(ctx, cfg, server)
	return rows, long, err
}

// startPairs starts the pairs of proxies in front of a server. Those that were started are to be
// stopped, also after an error.
func startPairs(ctx context.Context, cfg PairConfig, server string) (routes []route, err error) {
	routes = []route{{way: ReversePair, url: server}, {way: HHFRPair, url: server}}
	for range 2 {
		p, err := start(ctx, reverseProxy, 0, append(slices.Clone(cfg.Args), reverseProxy, routes[0].url)...)
		if err != nil {
			return routes, err
		}
		routes[0].proxies = append(routes[0].proxies, p)
		a, err := p.ask(command{})
		if err != nil {
			return routes, err
		}
		routes[0].url = a.Addr
		h, err := startProxy(ctx, routes[1].url)
		if h != nil {
			routes[1].proxies = append(routes[1].proxies, h)
		}
		if err != nil {
			return routes, err
		}
		routes[1].url = h.url
	}
	return routes, nil
}

// stopAll ends the proxies of routes.
func stopAll(routes []route) (err error) {
	for _, r := range routes {
		for _, p := range slices.Backward(r.proxies) {
			err = errors.Join(err, p.stop())
		}
	}
	return err
}

// callThrough lets the routes take turns with calls.
func callThrough(ctx context.Context, cfg PairConfig, routes []route) (rows []PairRow, err error) {
	for _, connections := range Connections {
		processor, p50 := make([][]float64, len(routes)), make([][]float64, len(routes))
		for round := range cfg.Rounds + 1 {
			for i, r := range routes {
				before, err := r.processor()
				if err != nil {
					return nil, err
				}
				times, err := load(ctx, r.url+"/echo", cfg.Messages, connections, cfg.Slice)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", r.way, err)
				}
				after, err := r.processor()
				if err != nil {
					return nil, err
				}
				if round > 0 {
					processor[i] = append(processor[i], (after-before)/float64(len(times)))
					p50[i] = append(p50[i], median(times))
				}
			}
		}
		for i, r := range routes {
			rows = append(rows, PairRow{r.way, connections, median(processor[i]), median(p50[i])})
		}
	}
	return rows, nil
}

// processor is what all proxies have used so far.
func (r *route) processor() (sum float64, err error) {
	for _, p := range r.proxies {
		used, err := p.processor()
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

// load calls from so many connections for a while, and returns how long each call took.
func load(
	ctx context.Context, url string, messages [][]byte, connections int, least time.Duration,
) (all []float64, err error) {
	t := &http.Transport{MaxIdleConnsPerHost: connections}
	defer t.CloseIdleConnections()
	client := &http.Client{Transport: t}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var next atomic.Int64
	end := time.Now().Add(least)
	for range connections {
		wg.Go(func() {
			var times []float64
			var failed error
			for failed == nil && time.Now().Before(end) {
				began := time.Now()
				failed = post(ctx, client, url, messages[int(next.Add(1))%len(messages)])
				times = append(times, float64(time.Since(began)))
			}
			mu.Lock()
			defer mu.Unlock()
			all, err = append(all, times...), errors.Join(err, failed)
		})
	}
	wg.Wait()
	return all, err
}

// sendLong sends long bodies through pairs, and over a stream alone.
func sendLong(ctx context.Context, cfg PairConfig, to string) (rows []LongRow, err error) {
	server, err := start(ctx, sinkServer, 0, append(slices.Clone(cfg.Args), sinkServer, "http://none")...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	a, err := server.ask(command{})
	if err != nil {
		return nil, err
	}
	client, err := hhfr.Dial(ctx, a.Addr+"/sink", nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	for _, body := range cfg.Long {
		for _, chunked := range []bool{false, true} {
			more, err := sendOne(ctx, cfg, to, client, body, chunked)
			if err != nil {
				return nil, err
			}
			rows = append(rows, more...)
		}
	}
	return rows, nil
}

// sendOne sends one long body in turns, through pairs that have carried nothing else: so that the
// memory is what that body takes.
func sendOne(
	ctx context.Context, cfg PairConfig, to string, client *hhfr.Client, body Long, chunked bool,
) (rows []LongRow, err error) {
	pairs, err := startPairs(ctx, cfg, to)
	defer func() { err = errors.Join(err, stopAll(pairs)) }()
	if err != nil {
		return nil, err
	}
	for _, r := range pairs { // a pair agrees beside its first calls
		if _, err := load(ctx, r.url+"/echo", cfg.Messages, 1, cfg.Slice); err != nil {
			return nil, fmt.Errorf("%s: %w", r.way, err)
		}
	}
	times := make([][]float64, len(pairs)+1)
	for range 1 + min(cfg.Rounds, 3) {
		began := time.Now()
		if err := streamLong(ctx, client, body.Body); err != nil {
			return nil, err
		}
		times[0] = append(times[0], float64(time.Since(began)))
		for i, r := range pairs {
			began := time.Now()
			if err := postLong(ctx, r.url+"/sink", body.Body, chunked); err != nil {
				return nil, fmt.Errorf("%s: %w", r.way, err)
			}
			times[i+1] = append(times[i+1], float64(time.Since(began)))
		}
	}
	rows = append(rows, LongRow{HHFRClients, body.Name, chunked, len(body.Body), median(times[0]), 0})
	for i, r := range pairs {
		rows = append(rows, LongRow{r.way, body.Name, chunked, len(body.Body), median(times[i+1]), r.most()})
	}
	return rows, nil
}

// most is the largest resident memory that a proxy of the route had.
func (r *route) most() (most float64) {
	for _, p := range r.proxies {
		most = max(most, p.most())
	}
	return most
}

func streamLong(ctx context.Context, client *hhfr.Client, body []byte) error {
	reply, err := client.Call(ctx, &hhfr.Request{Body: io.NopCloser(bytes.NewReader(body))})
	if err != nil {
		return err
	}
	_, err = reply.ReadAll()
	return err
}

func postLong(ctx context.Context, url string, body []byte, chunked bool) error {
	var r io.Reader = bytes.NewReader(body)
	if chunked {
		r = io.MultiReader(r) // whose length net/http does not know
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, r)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", contentType)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err = io.Copy(io.Discard, resp.Body); err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return err
}
