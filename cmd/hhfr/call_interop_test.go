//go:build interop

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// mockedServices are descriptions of the corpus that zeep reads without fetching anything.
var mockedServices = []string{
	"betfair", "blz-bank-codes", "dyndns", "eu-vies-vat", "interhome-travel", "mnb-exchange-rates", "ratp-transport",
	"stockquote", "taxcloud", "temperature", "vehicleselection", "wsdot-ferry", "xignite", "yandex-direct",
}

// mostCalled is how many operations of each are called.
const mostCalled = 20

// notForCXF are those of which CXF makes no call of one argument: it takes the wrapper apart.
var notForCXF = []string{"eu-vies-vat"}

// TestInteropMock: zeep and CXF read the descriptions that hhfr serve --wsdl gives, call their
// operations with samples, and read the replies.
func TestInteropMock(t *testing.T) {
	for _, program := range []string{"python3", "java", "javac", "mvn"} {
		shared.Program(t, program)
	}
	dir := t.TempDir()
	python := filepath.Join(dir, "venv", "bin", "python")
	build(t, dir, "python3", "-m", "venv", "venv")
	build(t, dir, python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", zeepRelease)
	build(t, dir, "sh", shared.Testdata(t, "interop", "stacks", "build.sh"), dir, "java")
	for _, name := range mockedServices {
		t.Run(name, func(t *testing.T) {
			files, err := filepath.Glob(filepath.Join(shared.Dir(t, "corpus", "wsdl", name), "*.wsdl"))
			require.NoError(t, err)
			require.NotEmpty(t, files)
			services, stop := servicesHere(t, "--wsdl", files[0])
			defer stop()
			url := ""
			for _, s := range services {
				if url == "" || s.URL < url {
					url = s.URL
				}
			}
			code, printed, stderr := do(t, "describe", files[0], "-o", "json")
			require.Zero(t, code, stderr)
			var described struct {
				Operations []struct {
					Name, Binding string
					Sample        json.RawMessage
				}
			}
			require.NoError(t, json.Unmarshal([]byte(printed), &described))
			var calls, ofCXF bytes.Buffer
			want := ""
			for _, op := range described.Operations[:min(len(described.Operations), mostCalled)] {
				require.NotEmpty(t, op.Sample, op.Name)
				line, err := json.Marshal(map[string]any{
					"binding": op.Binding, "operation": op.Name, "values": op.Sample,
				})
				require.NoError(t, err)
				calls.Write(append(line, '\n'))
				want += op.Name + "\n"
				code, sample, stderr := do(t, "schema", "sample", files[0], op.Name, "--message", "input")
				require.Zero(t, code, stderr)
				sample, _, _ = strings.Cut(sample, "</soap:Envelope>\n") // of the first binding, as described
				fmt.Fprintf(&ofCXF, "%s?wsdl\t%s\t%s\t%s\n", url, op.Binding, op.Name,
					base64.StdEncoding.EncodeToString([]byte(sample+"</soap:Envelope>")))
			}
			c := exec.CommandContext(t.Context(), python, shared.Testdata(t, "interop", "zeep_mock.py"), url+"?wsdl")
			c.Stdin = &calls
			var errs strings.Builder
			c.Stderr = &errs
			said, err := c.Output()
			require.NoError(t, err, &errs)
			assert.Equal(t, want, string(said))
			if slices.Contains(notForCXF, name) {
				return
			}
			c = exec.CommandContext(t.Context(), "java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp",
				filepath.Join(dir, "lib", "*")+":"+filepath.Join(dir, "classes"), "Mocked")
			c.Stdin, c.Stderr = &ofCXF, &errs
			said, err = c.Output()
			require.NoError(t, err, &errs)
			assert.Equal(t, strings.Count(want, "\n"), bytes.Count(said, []byte("\n")))
			for line := range strings.Lines(string(said)) { // the class of each reply, or what went wrong
				assert.Regexp(t, `^[A-Za-z0-9_]+\n$`, line, &errs)
				assert.NotEqual(t, "nothing\n", line)
			}
		})
	}
}

// TestInteropCall: hhfr call calls services of spyne and gSOAP, which know nothing of hhfr, by the
// descriptions that they give or that they were made of.
func TestInteropCall(t *testing.T) {
	for _, program := range []string{"python3", "wsdl2h", "soapcpp2", "gcc"} {
		shared.Program(t, program)
	}
	services, stop := servicesHere(t)
	defer stop()
	programs := buildPrograms(t, services["records"].WSDL)
	spyne := "http://" + startPrinting(t, programs.python, shared.Testdata(t, "interop", "spyne_server.py")) + "/"
	gsoap := "http://" + startPrinting(t, programs.gsoapServer) + "/"
	for name, args := range map[string][]string{
		"spyne": {spyne + "?wsdl", "records"},
		"gSOAP": {programs.wsdl, "records", "--to", gsoap},
		"serve": {services["records"].WSDL, "records"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, more := range [][]string{nil, {"--plain"}} {
				run := func(values ...string) (int, string, string) {
					return do(t, append(append([]string{"call"}, append(args, values...)...), more...)...)
				}
				code, printed, stderr := run(`{"record":[{"text":"<one>","number":-1,"flag":true},`+
					`{"text":"zwei é","number":2147483647,"flag":false}]}`, "-o", "values")
				require.Zero(t, code, stderr)
				assert.Contains(t, printed, "/0/text=<one>\n")
				assert.Contains(t, printed, "/0/number=-1\n")
				assert.Contains(t, printed, "/1/text=zwei é\n")
				assert.Contains(t, printed, "/1/flag=false\n")
				if name == "serve" {
					continue
				}
				code, printed, stderr = run("record/0/text=refuse", "record/0/number=1", "record/0/flag=true")
				assert.Equal(t, 1, code)
				assert.Contains(t, printed, `"faultstring": "no such record"`)
				assert.Contains(t, stderr, "fault: no such record")
			}
		})
	}
}

// TestInteropCallJava: hhfr call logs in at a service of CXF by WS-Security, and calls one of Axis
// 1.4 in SOAP's encoding, whose replies have references.
func TestInteropCallJava(t *testing.T) {
	for _, program := range []string{"java", "javac", "mvn"} {
		shared.Program(t, program)
	}
	dir := t.TempDir()
	sources := shared.Testdata(t, "interop", "stacks")
	build(t, dir, "sh", filepath.Join(sources, "build.sh"), dir, "java")
	folder := shared.Testdata(t, "interop", "axis")
	ports := startPrinting(t, "env", "-C", folder, "java", "-XX:TieredStopAtLevel=1", "-cp",
		filepath.Join(dir, "lib", "*")+":"+filepath.Join(dir, "classes"), "Called")
	cxf, axis, _ := strings.Cut(ports, " ")
	cxf, axis = "http://"+cxf+"/login", "http://127.0.0.1:"+axis+"/axis/services/encoded"
	secret, wrong := filepath.Join(dir, "secret"), filepath.Join(dir, "wrong")
	require.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
	require.NoError(t, os.WriteFile(wrong, []byte("other"), 0o600))
	record := []string{"record/0/text=a", "record/0/number=1", "record/0/flag=true", "-o", "values"}
	for _, c := range []struct {
		name    string
		args    []string
		code    int
		printed string
	}{
		{"text", []string{"--user", "ann", "--password-file", secret, "--wss", "text"}, 0, "record/0/text=a\n"},
		{"digest", []string{"--user", "ann", "--password-file", secret, "--wss", "digest"}, 0, "record/0/text=a\n"},
		{"wrong", []string{"--user", "ann", "--password-file", wrong, "--wss", "digest"}, 1, "SecurityError"},
		{"nobody", nil, 1, "SecurityError"},
	} {
		args := append([]string{"call", cxf + "?wsdl", "records"}, c.args...)
		code, printed, stderr := do(t, append(args, record...)...)
		assert.Equal(t, c.code, code, "%s: %s", c.name, stderr)
		assert.Contains(t, printed, c.printed, c.name)
	}
	for _, c := range []struct{ operation, values, want string }{
		{"squares", `{"of":[1,2,-3]}`, "squaresReturn/0=1\nsquaresReturn/1=4\nsquaresReturn/2=9\n"},
		{"find", `{"like":{"name":"a","price":1.50,"other":null},"times":2}`, "findReturn/name=a 2\n" +
			"findReturn/other/0/name=a\nfindReturn/other/0/other=null\nfindReturn/other/0/price=1.50\n" +
			"findReturn/other/1/name=a\nfindReturn/other/1/other=null\nfindReturn/other/1/price=1.50\n" +
			"findReturn/price=1.50\n"},
	} {
		code, printed, stderr := do(t, "call", axis+"?wsdl", c.operation, c.values, "--to", axis, "-o", "values")
		assert.Zero(t, code, stderr)
		assert.Equal(t, c.want, printed)
		assert.NotContains(t, stderr, "not as described")
	}
	code, _, stderr := do(t, "call", axis+"?wsdl", "find", `{"like":{"name":"none","price":1,"other":null},"times":2}`,
		"--to", axis)
	assert.Equal(t, 1, code)
	assert.Contains(t, stderr, "fault: no such item")
}
