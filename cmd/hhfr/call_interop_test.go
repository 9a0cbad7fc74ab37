//go:build interop

package main

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
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

// TestInteropMock: zeep reads the descriptions that hhfr serve --wsdl gives, calls their operations
// with samples, and reads the replies.
func TestInteropMock(t *testing.T) {
	shared.Program(t, "python3")
	dir := t.TempDir()
	python := filepath.Join(dir, "venv", "bin", "python")
	build(t, dir, "python3", "-m", "venv", "venv")
	build(t, dir, python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", zeepRelease)
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
			var calls bytes.Buffer
			want := ""
			for _, op := range described.Operations[:min(len(described.Operations), mostCalled)] {
				require.NotEmpty(t, op.Sample, op.Name)
				line, err := json.Marshal(map[string]any{
					"binding": op.Binding, "operation": op.Name, "values": op.Sample,
				})
				require.NoError(t, err)
				calls.Write(append(line, '\n'))
				want += op.Name + "\n"
			}
			c := exec.CommandContext(t.Context(), python, shared.Testdata(t, "interop", "zeep_mock.py"), url+"?wsdl")
			c.Stdin = &calls
			var errs strings.Builder
			c.Stderr = &errs
			said, err := c.Output()
			require.NoError(t, err, &errs)
			assert.Equal(t, want, string(said))
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
