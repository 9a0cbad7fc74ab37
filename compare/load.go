package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/hhfr/hhfr/compare/internal/builds"
	"github.com/hhfr/hhfr/compare/internal/program"
)

// Of `hhfr bench load` here: requests in flight, rounds of all rows in turn, how long each of them
// is, and how long CXF is used before, whose classes are compiled as they are used.
const (
	loadClients = 64
	loadRounds  = 5
	loadTime    = 3 * time.Second
	loadWarm    = 30 * time.Second
)

// loadRow is a server under load: right answers for each second of its processor time, the median
// of rounds. Those of loadBare are any.
type loadRow struct {
	Service   string    `json:"service"`
	Server    string    `json:"server"`
	Way       string    `json:"way"`
	PerSecond float64   `json:"per_cpu_second"`
	Rounds    []float64 `json:"rounds"`
}

// Servers of rows, and what carries their requests.
const (
	loadCXF    = "cxf"
	loadGSOAP  = "gsoap"
	loadServe  = "serve"
	loadBare   = "net/http" // that reads a request and answers always the same: where plain SOAP in Go ends
	loadPlain  = "soap-kept"
	loadStream = "stream"
)

// loadServices are those of `hhfr serve` that the others have, too.
var loadServices = []string{"geoip", "sum"}

// loaded is a server that runs.
type loaded struct {
	*program.Process
	url   func(service string) string
	wrong bool // are its answers
}

// on has a program run on one processor, where there is a choice.
func on(processor int, program string, args ...string) []string {
	if _, err := exec.LookPath("taskset"); err != nil || runtime.NumCPU() == 1 {
		return append([]string{program}, args...)
	}
	return append([]string{"taskset", "-c", strconv.Itoa(processor), program}, args...)
}

// measureLoad has the same requests answered by `hhfr serve`, CXF and gSOAP, each on one processor.
func measureLoad(ctx context.Context) (rows []*loadRow, err error) {
	servers, err := serveLoad(ctx)
	defer func() {
		for _, s := range servers {
			s.End()
		}
	}()
	if err != nil {
		return nil, err
	}
	for _, service := range loadServices {
		if _, err := servers[loadCXF].load(ctx, service, loadPlain, loadWarm); err != nil {
			return nil, err
		}
		for _, row := range [][2]string{{loadCXF, loadPlain}, {loadGSOAP, loadPlain}, {loadBare, loadPlain},
			{loadServe, loadPlain}, {loadServe, loadStream}} {
			rows = append(rows, &loadRow{Service: service, Server: row[0], Way: row[1]})
		}
	}
	for range loadRounds {
		for _, row := range rows {
			v, err := servers[row.Server].load(ctx, row.Service, row.Way, loadTime)
			if err != nil {
				return nil, fmt.Errorf("%s of %s by %s: %w", row.Service, row.Server, row.Way, err)
			}
			row.Rounds = append(row.Rounds, v)
		}
	}
	for _, row := range rows {
		row.PerSecond = median(row.Rounds)
	}
	return rows, nil
}

// serveLoad starts the servers; with an error it returns those that run.
func serveLoad(ctx context.Context) (map[string]loaded, error) {
	servers := map[string]loaded{}
	built, err := builds.Stacks(ctx, "java", "load")
	if err != nil {
		return servers, err
	}
	hhfr, err := program.Path()
	if err != nil {
		return servers, err
	}
	checkout, err := program.Checkout()
	if err != nil {
		return servers, err
	}
	self, err := os.Executable()
	if err != nil {
		return servers, err
	}
	ranges := filepath.Join(checkout, "internal", "peer", "data", "nl-ipv4.bin")
	one := func(path string) func(string) string { return func(string) string { return path } }
	for _, v := range []struct {
		name    string
		command []string
		path    func(service string) string
	}{
		{loadGSOAP, []string{filepath.Join(built.Dir, "load"), ranges}, one("/")},
		{loadCXF, []string{"java", "-XX:+UseSerialGC", // on one processor the one that takes least
			"-Djava.util.logging.config.file=" + filepath.Join(built.Sources, "quiet.properties"),
			"-cp", filepath.Join(built.Dir, "classes") + string(filepath.ListSeparator) +
				filepath.Join(built.Dir, "lib", "*"), "Load", ranges}, one("/load")},
		{loadBare, []string{self, bareArg}, one("/")},
		{loadServe, []string{hhfr, "serve", "--listen", "127.0.0.1:0", "--store", "mem:", "-o", "json"},
			func(service string) string { return "/" + service }},
	} {
		command := on(0, v.command[0], v.command[1:]...)
		p, err := program.Start(ctx, []string{"GOMAXPROCS=1"}, command[0], command[1:]...)
		if err != nil {
			return servers, fmt.Errorf("%s: %w", v.name, err)
		}
		address := net.JoinHostPort("127.0.0.1", p.First)
		if v.name == loadServe {
			var said struct{ Addresses map[string]string }
			if err := json.Unmarshal([]byte(p.First), &said); err != nil {
				p.End()
				return servers, fmt.Errorf("hhfr serve said %q: %w", p.First, err)
			}
			address = said.Addresses["http"]
		}
		servers[v.name] = loaded{p, func(service string) string { return "http://" + address + v.path(service) },
			v.name == loadBare}
	}
	return servers, nil
}

// load has `hhfr bench load` ask a server for so long, and returns right answers for each second of
// the server's processor time.
func (s loaded) load(ctx context.Context, service, way string, how time.Duration) (perSecond float64, err error) {
	before, err := s.Processor()
	if err != nil {
		return 0, err
	}
	hhfr, err := program.Path()
	if err != nil {
		return 0, err
	}
	command := on(1, hhfr, "bench", "load", s.url(service), "--service", service, "--ways", way, "--clients",
		strconv.Itoa(loadClients), "--for", how.String(), "--repeat", "1", "-q", "-o", "json")
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("hhfr bench load: %w: %s", err, &errs)
	}
	after, err := s.Processor()
	if err != nil {
		return 0, err
	}
	answers, err := answersIn(out, s.wrong)
	return float64(answers) / (after - before).Seconds(), err
}

// bareArg makes the program a server that looks at nothing.
const bareArg = "bare"

// runBare prints its port, and ends with its input.
func runBare(_ context.Context, _ []string, in io.Reader, out io.Writer) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return err
	}
	answer := []byte(`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>` +
		`<geoipResponse xmlns="urn:hhfr:peer:1"><result>false</result></geoipResponse></s:Body></s:Envelope>`)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/xml; charset=utf-8")
		w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
		_, _ = w.Write(answer)
	}), ReadHeaderTimeout: time.Minute}
	defer server.Close()
	go func() { _ = server.Serve(listener) }() // ends with the process
	if _, err := fmt.Fprintln(out, port); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	return err
}

// answersIn are the answers in what `hhfr bench load` printed. That there is none is an error, as
// is one that is wrong, unless those count.
func answersIn(printed []byte, wrong bool) (answers int, err error) {
	var said struct {
		Rows []struct{ Responses, Successful int }
	}
	if err := json.Unmarshal(printed, &said); err != nil {
		return 0, fmt.Errorf("hhfr bench load said %.100q: %w", printed, err)
	}
	for _, row := range said.Rows {
		if !wrong && row.Responses > row.Successful {
			return 0, fmt.Errorf("%d of %d answers are wrong", row.Responses-row.Successful, row.Responses)
		}
		answers += row.Responses
	}
	if answers == 0 {
		return 0, fmt.Errorf("no answer in %.100q", printed)
	}
	return answers, nil
}

func (r *results) writeLoad(p *tablePrinter) {
	if len(r.Load) == 0 {
		return
	}
	p.printf("\n`hhfr bench load` with %d requests in flight at servers of one processor, the same requests: right "+
		"answers for each second of the server's processor time, medians of %d rounds in turn. The server by "+
		"net/http alone looks at nothing, and answers always the same.\n\n",
		loadClients, loadRounds)
	t := cells{{"service", "server", "by", "answers / CPU second", "to cxf", "to gsoap"}}
	for _, row := range r.Load {
		t = append(t, []string{row.Service, row.Server, row.Way, number(row.PerSecond),
			ratio(row.PerSecond / r.loadOf(row.Service, loadCXF, loadPlain)),
			ratio(row.PerSecond / r.loadOf(row.Service, loadGSOAP, loadPlain))})
	}
	p.table(t)
}

// loadOf is the figure of a row; 0 if it was not measured.
func (r *results) loadOf(service, server, way string) float64 {
	for _, row := range r.Load {
		if row.Service == service && row.Server == server && row.Way == way {
			return row.PerSecond
		}
	}
	return 0
}

func loadGoals() []goal {
	to := func(service, way, other string) func(*results) (float64, bool) {
		return func(r *results) (float64, bool) {
			least := r.loadOf(service, other, loadPlain)
			if least == 0 {
				return 0, false
			}
			return r.loadOf(service, loadServe, way) / least, true
		}
	}
	return []goal{
		{33, loadWhat, 3, true, to("geoip", loadPlain, loadCXF)},
		{33, "geoip over a stream, answers for a CPU second to gSOAP's", 2, true, to("geoip", loadStream, loadGSOAP)},
		{32, "sum in plain SOAP, answers for a CPU second to gSOAP's", 0.9, true, to("sum", loadPlain, loadGSOAP)},
	}
}
