//go:build interop

package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/serve"
	"github.com/hhfr/hhfr/internal/shared"
)

// payloadSize is how much the clients upload, in bytes.
const payloadSize = 25 << 20

// stacks are the SOAP stacks of testdata/interop/stacks, built in a folder of their own.
type stacks struct {
	dir, sources       string
	wsdl, key, cert    string
	payload, uploaded  string // a file, and what servers say of it
	python, gsoap, jar string
	mono, classes      string
	services           map[string]serve.ServiceLine // of hhfr serve
	javaMu             sync.Mutex
	javaIn             io.WriteCloser
	javaOut            *bufio.Reader
}

// buildStacks gets the packages, and builds the programs, two at a time. Some are made of the
// descriptions of the services of hhfr serve.
func buildStacks(t *testing.T, services map[string]serve.ServiceLine) *stacks {
	t.Helper()
	dir, sources := t.TempDir(), shared.Testdata(t, "interop", "stacks")
	s := &stacks{
		dir: dir, sources: sources, wsdl: filepath.Join(sources, "stacks.wsdl"),
		key: filepath.Join(dir, "key.pem"), cert: filepath.Join(dir, "cert.pem"),
		payload: filepath.Join(dir, "payload"),
		python:  filepath.Join(dir, "venv", "bin", "python"), gsoap: filepath.Join(dir, "gsoap"),
		jar: filepath.Join(dir, "lib", "*"), classes: filepath.Join(dir, "classes"),
		mono: filepath.Join(dir, "client.exe"), services: services,
	}
	var described []string
	for _, service := range services {
		if service.WSDL != "" {
			described = append(described, service.WSDL)
		}
	}
	slices.Sort(described) // programs number the namespaces
	require.Len(t, described, 8, "each client calls all")
	s.input(t)
	steps := make(chan [][]string, 5)
	part := func(names ...string) []string {
		return append([]string{"sh", filepath.Join(sources, "build.sh"), dir}, names...)
	}
	steps <- [][]string{part("java")}
	steps <- [][]string{part("python")}
	steps <- [][]string{part("node")}
	steps <- [][]string{
		part("keys", "gsoap"),
		slices.Concat([]string{"sh", "-c", gsoapServicesBuild, "sh", filepath.Join(sources, "gsoap_services.c")},
			described),
	}
	steps <- [][]string{append([]string{"sh", "-c", monoBuild, "sh", sources}, described...)}
	close(steps)
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for all := range steps {
				for _, step := range all {
					c := exec.CommandContext(t.Context(), step[0], step[1:]...)
					c.Dir = dir
					out, err := c.CombinedOutput()
					assert.NoError(t, err, "%s\n%s", strings.Join(step, " "), out)
				}
			}
		})
	}
	workers.Wait()
	require.False(t, t.Failed())
	return s
}

// gsoapServicesBuild makes gsoap_services of a source and descriptions.
const gsoapServicesBuild = `set -e
mkdir services && cd services
source=$1 && shift
wsdl2h -c -o services.h "$@"
g=/usr/share/gsoap
soapcpp2 -c -1 -x -C -I$g/import:$g services.h
gcc -w -O0 -I. -I$g -o ../gsoap_services "$source" soapC.c soapClient.c $g/custom/duration.c -lgsoap`

// monoBuild makes client.exe of a folder with sources and descriptions.
const monoBuild = `set -e
from=$1 && shift
for wsdl; do described="$described Services=$wsdl"; done
mcs -out:wsdl.exe -r:System.Web.Services.dll "$from/mono_wsdl.cs"
mono wsdl.exe classes.cs "Stacks=file://$from/stacks.wsdl" $described
sed 's/11/12/g; s/1\.1/1.2/g' "$from/mono_services.cs" > services12.cs
mcs -out:client.exe -r:System.Web.Services.dll "$from/mono_client.cs" "$from/mono_services.cs" services12.cs classes.cs`

// input writes a payload.
func (s *stacks) input(t *testing.T) {
	t.Helper()
	payload := make([]byte, payloadSize)
	_, _ = rand.Read(payload)
	sum := sha256.Sum256(payload)
	s.uploaded = fmt.Sprintf("%d %s", len(payload), hex.EncodeToString(sum[:]))
	require.NoError(t, os.WriteFile(s.payload, payload, 0o600))
}

// startJava starts the process of CXF and Axis, and returns the host of its server.
func (s *stacks) startJava(t *testing.T) string {
	t.Helper()
	java := exec.CommandContext(t.Context(), "java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
		"-Dfile.encoding=UTF-8", "-Djava.util.logging.config.file="+filepath.Join(s.sources, "quiet.properties"),
		"-cp", s.classes+string(filepath.ListSeparator)+s.jar, "Stacks", s.key, s.cert, s.payload)
	in, err := java.StdinPipe()
	require.NoError(t, err)
	out, err := java.StdoutPipe()
	require.NoError(t, err)
	var errs bytes.Buffer
	java.Stderr = &errs
	require.NoError(t, java.Start())
	t.Cleanup(func() {
		_ = in.Close() // it ends
		_ = java.Wait()
		if t.Failed() {
			t.Logf("%s", &errs)
		}
	})
	s.javaIn, s.javaOut = in, bufio.NewReader(out)
	port, err := s.javaOut.ReadString('\n')
	require.NoError(t, err, &errs)
	return "127.0.0.1:" + strings.TrimSpace(port)
}

// call has a client make calls, as in fault=URL, and returns a line for each.
func (s *stacks) call(t *testing.T, client string, calls []string) string {
	t.Helper()
	run := func(program string, args ...string) string {
		c := exec.CommandContext(t.Context(), program, append(args, calls...)...)
		c.Dir = s.dir
		c.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(s.dir, "node_modules"))
		var errs bytes.Buffer
		c.Stderr = &errs
		out, err := c.Output()
		assert.NoError(t, err, &errs)
		return string(out)
	}
	switch client {
	case "CXF", "Axis":
		s.javaMu.Lock()
		defer s.javaMu.Unlock()
		_, err := fmt.Fprintln(s.javaIn, strings.ToLower(client), strings.Join(calls, " "))
		require.NoError(t, err)
		said := ""
		for {
			line, err := s.javaOut.ReadString('\n')
			require.NoError(t, err)
			if line == "\n" {
				return said
			}
			said += line
		}
	case "zeep":
		return run(s.python, filepath.Join(s.sources, "zeep_client.py"), s.wsdl, s.key, s.cert)
	case "node-soap":
		return run("node", "--no-deprecation", filepath.Join(s.sources, "node_client.js"), s.wsdl, s.key, s.cert,
			s.payload)
	case "gSOAP":
		if strings.HasPrefix(calls[0], "services=") {
			return run(filepath.Join(s.dir, "gsoap_services"))
		}
		return run(s.gsoap, "client", s.key, s.cert, s.payload)
	case "strong-soap":
		return run("node", "--no-deprecation", filepath.Join(s.sources, "strong_client.js"), s.wsdl)
	case "suds":
		return run(s.python, filepath.Join(s.sources, "suds_client.py"), s.wsdl)
	case "PHP":
		return run("php", filepath.Join(s.sources, "php_client.php"), s.wsdl)
	case "SOAP::Lite":
		return run("perl", filepath.Join(s.sources, "soaplite_client.pl"), s.wsdl)
	case "Mono":
		return run("mono", s.mono)
	case "hhfr call":
		return run("sh", filepath.Join(s.sources, "call_client.sh"), s.wsdl)
	default:
		return run("sh", filepath.Join(s.sources, "curl_client.sh"), s.payload)
	}
}

// stackCalls are what each client calls of each server: what both can do, called directly.
var stackCalls = []struct{ client, server, calls string }{
	{"CXF", "CXF", "records fault note upload addressed signed reliable reliable11"},
	{"CXF", "gSOAP", "records fault note upload addressed"},
	{"CXF", "serve", "records"},
	{"Axis", "CXF", "records fault note"},
	{"Axis", "gSOAP", "records fault note"},
	{"Axis", "serve", "records"},
	{"gSOAP", "CXF", "records fault note upload addressed"},
	{"gSOAP", "gSOAP", "records fault note upload addressed"},
	{"gSOAP", "signed gSOAP", "signed"},
	{"gSOAP", "serve", "records"},
	{"zeep", "CXF", "records fault note addressed signed"},
	{"zeep", "gSOAP", "records fault note addressed"},
	{"zeep", "serve", "records"},
	{"node-soap", "CXF", "records fault note upload addressed signed"},
	{"node-soap", "gSOAP", "records fault note upload addressed"},
	{"node-soap", "serve", "records"},
	{"curl", "CXF", "records fault note upload addressed"},
	{"curl", "gSOAP", "records fault note upload addressed"},
	{"curl", "serve", "records"},
	{"strong-soap", "CXF", "records fault"},
	{"strong-soap", "gSOAP", "records fault"},
	{"suds", "CXF", "records fault note"},
	{"suds", "gSOAP", "records fault note"},
	{"PHP", "CXF", "records fault note"},
	{"PHP", "gSOAP", "records fault note"},
	{"SOAP::Lite", "CXF", "records fault note"},
	{"SOAP::Lite", "gSOAP", "records fault note"},
	{"hhfr call", "CXF", "records fault note"},
	{"hhfr call", "gSOAP", "records fault note"},
	{"Mono", "CXF", "records fault note"},
	{"Mono", "gSOAP", "records fault note"},
}

// describedClients are those that call the services of hhfr serve by the description of each. Axis
// and suds have SOAP 1.1 only.
var describedClients = []string{"CXF", "Axis", "gSOAP", "zeep", "node-soap", "strong-soap", "suds", "PHP", "SOAP::Lite",
	"Mono"}

// said is what a client says of a call that went well.
func (s *stacks) said(t *testing.T, client, call string) string {
	switch call {
	case "services":
		return s.saidOfServices(t, client)
	case "fault":
		return "fault: no such record\n"
	case "note":
		return "note: sent\n"
	case "upload":
		return "upload: " + s.uploaded + "\n"
	}
	return call + ": 200 rows\n"
}

// saidOfServices is what a client says of the services of hhfr serve, in each version of SOAP.
func (s *stacks) saidOfServices(t *testing.T, client string) string {
	reply := curl(t, "curl", "-s", "-H", "Content-Type: text/xml", "--data-binary",
		`<E:Envelope xmlns:E="http://schemas.xmlsoap.org/soap/envelope/"><E:Body><blob xmlns="urn:hhfr:peer:1">`+
			`<size>30</size><seed>7</seed></blob></E:Body></E:Envelope>`, s.services["blob"].URL)
	blob := regexp.MustCompile("<payload>(.+)</payload>").FindSubmatch(reply)
	require.NotNil(t, blob, "%s", reply)
	said := `concat VERSION: thin  linksé<&>
sum VERSION: 1.25
records VERSION: <one> -1 true, zwei é 2147483647 false
geoip VERSION: true
refused VERSION: "nowhere" is no IPv4 address
blob VERSION: ` + string(blob[1]) + `
ticker VERSION: ticks
ledger VERSION: a-1 -5
context VERSION: http://docs.oasis-open.org/ws-caf/2005/10/wsctx/status/active
`
	all := strings.ReplaceAll(said, "VERSION", "1.1")
	if client != "Axis" && client != "suds" {
		all += strings.ReplaceAll(said, "VERSION", "1.2")
	}
	return all
}

// TestInteropStacksThroughOnePair: hhfr call and clients of eleven SOAP stacks call servers of
// three through one pair with a route to each: WS-Security signatures, WS-Addressing,
// WS-ReliableMessaging, uploads of 25 MB by MTOM, faults and one-way messages, and the services of
// hhfr serve by the description of each. Each call has the outcome of a direct one, and every
// connection carries, at the server, the bytes that it carries at the client.
func TestInteropStacksThroughOnePair(t *testing.T) {
	for _, program := range []string{"java", "javac", "mvn", "npm", "node", "python3", "curl", "gcc", "soapcpp2",
		"wsdl2h", "openssl", "php", "SOAPsh", "mcs", "mono"} {
		shared.Program(t, program)
	}
	services, stop := servicesHere(t, "--context", "loopback", "--store", "mem:", "--soap-rm", "all")
	defer stop()
	s := buildStacks(t, services)
	serve, err := url.Parse(services["records"].URL)
	require.NoError(t, err)
	servers := []struct{ name, host, path, route string }{
		{"CXF", s.startJava(t), "/cxf", "path = /cxf"},
		{"gSOAP", startPrinting(t, s.gsoap, "server", s.key, s.cert), "/gsoap", "path = /gsoap"},
		{"signed gSOAP", startPrinting(t, s.gsoap, "signed", s.key, s.cert), "/gsoap", ""}, // by its host
		{"serve", serve.Host, serve.Path, ""},
	}
	urls := map[string]func(call string) string{}
	entries, exits := map[string]*tap{}, map[string]*tap{}
	near := t.TempDir()
	nearListen := shared.Addr(t)
	far, routes := "[proxy]\nlisten = 127.0.0.1:0\nno-offer = true\n", ""
	for i, v := range servers {
		entry, exit := startTap(t, nearListen), startTap(t, v.host)
		entries[v.name], exits[v.name] = entry, exit
		if v.route == "" {
			v.route = "host = " + entry.host()
		}
		far += fmt.Sprintf("[proxy route r%d]\n%s\nupstream = http://%s/\n", i, v.route, exit.host())
		routes += fmt.Sprintf("[proxy route r%d]\n%s\nupstream = http://FAR/%d\n", i, v.route, i%2)
		urls[v.name] = func(call string) string {
			path := v.path
			switch {
			case call == "services":
				path = ""
			case v.name == "serve":
			case v.name == "CXF" && (call == "addressed" || call == "signed" || call == "upload"):
				path += "/" + call
			case call == "reliable11":
				path += "/reliable"
			case call == "reliable" || call == "addressed":
				path += "/" + call
			default:
				path += "/plain"
			}
			return path
		}
	}
	start := func(name, text string) *proxyProcess {
		file := filepath.Join(near, name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return startCommand(t, exec.CommandContext(t.Context(), "hhfr", "proxy", "--config", file, "-o", "json", "-v"))
	}
	farHalf := start("far.conf", far)
	routes = strings.ReplaceAll(routes, "FAR", farHalf.listen)
	nearHalf := start("near.conf", "[proxy]\nlisten = "+nearListen+"\n"+routes)
	nearHalf.linked(2) // for two different URLs of the far half
	hosts := map[string]string{}
	for _, v := range servers {
		hosts[v.name] = v.host
	}
	run := func(client, server, calls string) {
		t.Run(client+" to "+server+": "+calls, func(t *testing.T) {
			want, direct, through := "", []string(nil), []string(nil)
			for _, call := range strings.Fields(calls) {
				path := urls[server](call)
				direct = append(direct, call+"=http://"+hosts[server]+path)
				through = append(through, call+"=http://"+entries[server].host()+path)
				want += s.said(t, client, call)
			}
			assert.Equal(t, want+want, s.call(t, client, append(direct, through...)), "directly, and through the pair")
		})
	}
	var described sync.WaitGroup
	for _, client := range describedClients { // at once, as all wait for the next second of the ticker
		described.Go(func() { run(client, "serve", "services") })
	}
	for _, one := range stackCalls {
		run(one.client, one.server, one.calls)
	}
	described.Wait()
	nearHalf.end()
	farHalf.end()
	_ = s.javaIn.Close() // its connections end with it
	total := int64(0)
	for _, v := range servers {
		passed := entries[v.name].all()
		assert.ElementsMatch(t, passed, exits[v.name].all(), "%s: at the clients, and at the server", v.name)
		t.Logf("%s: %d connections", v.name, len(passed))
		total += entries[v.name].octets
	}
	t.Logf("%d bytes through the pair, each as it was", total)
	assert.Greater(t, total, int64(8*payloadSize))
}
