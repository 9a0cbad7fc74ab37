package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAnswersIn(t *testing.T) {
	for _, c := range []struct {
		name, printed string
		wrong         bool
		want          int
		err           string
	}{
		{"right", `{"version":1,"rows":[{"responses":7,"successful":7},{"responses":2,"successful":2}]}`, false, 9, ""},
		{"wrong", `{"version":1,"rows":[{"responses":7,"successful":5}]}`, false, 0, "2 of 7 answers are wrong"},
		{"wrong is meant", `{"version":1,"rows":[{"responses":7,"successful":5}]}`, true, 7, ""},
		{"none", `{"version":1,"rows":[{"responses":0,"successful":0}]}`, true, 0, "no answer in"},
		{"no rows", `{}`, false, 0, "no answer in"},
		{"text", "WAY CLIENTS", false, 0, `hhfr bench load said "WAY CLIENTS"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := answersIn([]byte(c.printed), c.wrong)
			assert.Equal(t, c.want, got)
			if c.err == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, c.err)
			}
		})
	}
}

func TestLoadGoals(t *testing.T) {
	states := func(plain float64) (list map[string]bool, text string) {
		r := newReport(few())
		for _, row := range []loadRow{
			{Service: "geoip", Server: loadCXF, Way: loadPlain, PerSecond: 10},
			{Service: "geoip", Server: loadGSOAP, Way: loadPlain, PerSecond: 20},
			{Service: "geoip", Server: loadServe, Way: loadPlain, PerSecond: plain},
			{Service: "geoip", Server: loadServe, Way: loadStream, PerSecond: 40},
			{Service: "sum", Server: loadGSOAP, Way: loadPlain, PerSecond: 20},
			{Service: "sum", Server: loadServe, Way: loadPlain, PerSecond: 17},
		} {
			r.Load = append(r.Load, &row)
		}
		r.judge()
		list = map[string]bool{}
		for _, v := range r.Goals {
			list[v.Goal] = v.Met
		}
		var b bytes.Buffer
		require.NoError(t, r.write(&b, "text"))
		return list, b.String()
	}
	got, text := states(30)
	assert.Equal(t, map[string]bool{
		loadWhat: true,
		"geoip over a stream, answers for a CPU second to gSOAP's": true,
		"sum in plain SOAP, answers for a CPU second to gSOAP's":   false,
	}, got)
	assert.Regexp(t, `\| geoip +\| +serve \| +stream \| +40\.0 \| +4\.00 \| +2\.00 \|`, text)
	got, _ = states(29)
	assert.False(t, got[loadWhat])
}

// The server that looks at nothing answers, and ends with its input.
func TestRunBare(t *testing.T) {
	in, end := io.Pipe()
	told, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- runBare(context.Background(), nil, in, out) }()
	line := make([]byte, 16)
	n, err := told.Read(line)
	require.NoError(t, err)
	url := "http://127.0.0.1:" + strings.TrimSpace(string(line[:n]))
	reply, err := http.Post(url, "text/xml", strings.NewReader("<a/>"))
	require.NoError(t, err)
	text, err := io.ReadAll(reply.Body)
	require.NoError(t, err)
	require.NoError(t, reply.Body.Close())
	assert.Contains(t, string(text), "<result>false</result>")
	require.NoError(t, end.Close())
	require.NoError(t, <-ended)
}
