//go:build interop

package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
	java               *exec.Cmd
	javaIn             io.Writer
	javaOut            *bufio.Reader
}

// buildStacks gets the packages, and builds the programs, two at a time.
func buildStacks(t *testing.T) *stacks {
	t.Helper()
	dir, sources := t.TempDir(), shared.Testdata(t, "interop", "stacks")
	s := &stacks{
		dir: dir, sources: sources, wsdl: filepath.Join(sources, "stacks.wsdl"),
		key: filepath.Join(dir, "key.pem"), cert: filepath.Join(dir, "cert.pem"),
		payload: filepath.Join(dir, "payload"),
		python:  filepath.Join(dir, "venv", "bin", "python"), gsoap: filepath.Join(dir, "gsoap"),
		jar: filepath.Join(dir, "lib", "*"),
	}
	s.inputs(t)
	steps := make(chan [][]string, 4)
	steps <- [][]string{{"mvn", "-q", "-B", "-f", filepath.Join(sources, "pom.xml"), "dependency:copy-dependencies",
		"-DoutputDirectory=" + filepath.Dir(s.jar)}}
	steps <- [][]string{{"python3", "-m", "venv", "venv"},
		{s.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", zeepRelease, "xmlsec==1.3.17"}}
	steps <- [][]string{{"cp", filepath.Join(sources, "package.json"), "."},
		{"npm", "install", "--prefer-offline", "--no-audit", "--no-fund", "--silent"}}
	steps <- [][]string{{"sh", "-c", gsoapBuild, "sh", s.wsdl, filepath.Join(sources, "gsoap.c")}}
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

// gsoapBuild makes gsoap of a description and a source, with the plug-ins of gSOAP for
// WS-Addressing and WS-Security.
const gsoapBuild = `set -e
wsdl2h -c -o types.h "$1"
(printf '#import "wsa5.h"\n#import "wsse.h"\n'; cat types.h) > stacks.h
g=/usr/share/gsoap
soapcpp2 -c -1 -x -I$g/import:$g stacks.h
gcc -w -O0 -I. -I$g -I$g/plugin $(pkg-config --cflags gsoapssl) -o gsoap "$2" soapC.c soapClient.c soapServer.c \
	$g/plugin/wsaapi.c $g/plugin/wsseapi.c $g/plugin/smdevp.c $g/plugin/mecevp.c $g/plugin/threads.c \
	$g/custom/struct_timeval.c $(pkg-config --static --libs gsoapssl) -lpthread`

// inputs writes a key with a certificate, and a payload.
func (s *stacks) inputs(t *testing.T) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "peer"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	payload := make([]byte, payloadSize)
	_, _ = rand.Read(payload)
	sum := sha256.Sum256(payload)
	s.uploaded = fmt.Sprintf("%d %s", len(payload), hex.EncodeToString(sum[:]))
	for name, octets := range map[string][]byte{
		s.key:     pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
		s.cert:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}),
		s.payload: payload,
	} {
		require.NoError(t, os.WriteFile(name, octets, 0o600))
	}
}

// startJava starts the process of CXF and Axis, and returns the host of its server.
func (s *stacks) startJava(t *testing.T) string {
	t.Helper()
	s.java = exec.CommandContext(t.Context(), "java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
		"-Djava.util.logging.config.file="+filepath.Join(s.sources, "quiet.properties"), "-cp", s.jar,
		filepath.Join(s.sources, "Stacks.java"), s.key, s.cert, s.payload)
	in, err := s.java.StdinPipe()
	require.NoError(t, err)
	out, err := s.java.StdoutPipe()
	require.NoError(t, err)
	var errs bytes.Buffer
	s.java.Stderr = &errs
	require.NoError(t, s.java.Start())
	t.Cleanup(func() {
		_ = in.Close() // it ends
		_ = s.java.Wait()
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
		return run(s.gsoap, "client", s.key, s.cert, s.payload)
	default:
		return run("sh", filepath.Join(s.sources, "curl_client.sh"), s.payload)
	}
}

// tap forwards connections, and notes what went each way.
type tap struct {
	listen net.Listener
	wait   sync.WaitGroup

	mu     sync.Mutex
	passed []string // a line for each connection that carried anything
	octets int64
}

// direction is what went one way of a connection.
type direction struct {
	octets int64
	sum    []byte
	begins string
}

func (d *direction) String() string {
	line, _, _ := strings.Cut(d.begins, "\r\n")
	return fmt.Sprintf("%d bytes from %q, SHA-256 %x", d.octets, line, d.sum)
}

func startTap(t *testing.T, to string) *tap {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &tap{listen: l}
	p.wait.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			p.wait.Go(func() { p.forward(t, in, to) })
		}
	})
	t.Cleanup(func() { _ = l.Close() })
	return p
}

func (p *tap) forward(t *testing.T, in net.Conn, to string) {
	out, err := new(net.Dialer).DialContext(t.Context(), "tcp", to)
	if !assert.NoError(t, err) {
		_ = in.Close()
		return
	}
	var up, down direction
	var both sync.WaitGroup
	both.Go(func() { up.copy(out, in) })
	both.Go(func() { down.copy(in, out) })
	both.Wait()
	_ = in.Close()
	_ = out.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	if up.octets+down.octets > 0 {
		p.passed = append(p.passed, fmt.Sprintf("%s; %s", &up, &down))
		p.octets += up.octets + down.octets
	}
}

func (d *direction) copy(to, from net.Conn) {
	hash, some := sha256.New(), make([]byte, 64<<10)
	for {
		n, err := from.Read(some)
		_, _ = hash.Write(some[:n])
		if d.octets == 0 {
			d.begins = string(some[:min(n, 100)])
		}
		d.octets += int64(n)
		if _, failed := to.Write(some[:n]); err != nil || failed != nil {
			break
		}
	}
	d.sum = hash.Sum(nil)
	_ = to.(*net.TCPConn).CloseWrite()
}

func (p *tap) host() string { return p.listen.Addr().String() }

// all returns what was passed, once every connection has ended.
func (p *tap) all() []string {
	_ = p.listen.Close()
	p.wait.Wait()
	return p.passed
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
}

// said is what a client says of a call that went well.
func (s *stacks) said(call string) string {
	switch call {
	case "fault":
		return "fault: no such record\n"
	case "note":
		return "note: sent\n"
	case "upload":
		return "upload: " + s.uploaded + "\n"
	}
	return call + ": 200 rows\n"
}

// TestInteropStacksThroughOnePair: clients of six SOAP stacks call servers of three through one
// pair with a route to each: WS-Security signatures, WS-Addressing, WS-ReliableMessaging, uploads
// of 25 MB by MTOM, faults and one-way messages. Each call has the outcome of a direct one, and
// every connection carries, at the server, the bytes that it carries at the client.
func TestInteropStacksThroughOnePair(t *testing.T) {
	for _, program := range []string{"java", "mvn", "npm", "node", "python3", "curl", "gcc", "soapcpp2", "wsdl2h"} {
		shared.Program(t, program)
	}
	s := buildStacks(t)
	services, stop := servicesHere(t)
	defer stop()
	serve, err := url.Parse(services["records"].URL)
	require.NoError(t, err)
	servers := []struct{ name, host, path, route string }{
		{"CXF", s.startJava(t), "/cxf", "path = /cxf"},
		{"gSOAP", startPrinting(t, s.gsoap, "server", s.key, s.cert), "/gsoap", "path = /gsoap"},
		{"signed gSOAP", startPrinting(t, s.gsoap, "signed", s.key, s.cert), "/gsoap", ""}, // by its host
		{"serve", serve.Host, serve.Path, "path = " + serve.Path},
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
	for _, one := range stackCalls {
		t.Run(one.client+" to "+one.server, func(t *testing.T) {
			want, direct, through := "", []string(nil), []string(nil)
			for _, call := range strings.Fields(one.calls) {
				path := urls[one.server](call)
				direct = append(direct, call+"=http://"+hosts[one.server]+path)
				through = append(through, call+"=http://"+entries[one.server].host()+path)
				want += s.said(call)
			}
			assert.Equal(t, want, s.call(t, one.client, direct), "called directly")
			assert.Equal(t, want, s.call(t, one.client, through))
		})
	}
	nearHalf.end()
	farHalf.end()
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
