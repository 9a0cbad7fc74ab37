package session_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The three parts of a handler that writes, flushes and waits three times arrive separately: it
// continues only when its client has the earlier ones. So does a client that writes its request in
// three parts, while the reply comes.
func TestFlushesArrive(t *testing.T) {
	heard := make(chan string)
	for name, flush := range map[string]func(http.ResponseWriter) error{
		"Flusher":            func(w http.ResponseWriter) error { w.(http.Flusher).Flush(); return nil },
		"ResponseController": func(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() },
	} {
		t.Run(name, func(t *testing.T) {
			url := speaking(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_ = http.NewResponseController(w).EnableFullDuplex()
				w.Header().Set("Content-Type", "text/xml")
				in := bufio.NewReader(r.Body)
				for range 3 {
					line, err := in.ReadString('\n')
					assert.NoError(t, err)
					_, err = io.WriteString(w, "<heard>"+line)
					assert.NoError(t, err)
					assert.NoError(t, flush(w))
					<-heard
				}
			}))
			client, rt := swapped(t, required)
			body, to := io.Pipe()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
			require.NoError(t, err)
			req.Header.Set("Content-Type", "text/xml")
			go func() { _, _ = io.WriteString(to, "<a>0\n") }()
			resp, err := client.Do(req)
			require.NoError(t, err)
			in := bufio.NewReader(resp.Body)
			for i := range 3 {
				line, err := in.ReadString('\n')
				require.NoError(t, err)
				assert.Equal(t, fmt.Sprintf("<heard><a>%d\n", i), line)
				heard <- line
				if i < 2 {
					_, err = fmt.Fprintf(to, "<a>%d\n", i+1)
					require.NoError(t, err)
				}
			}
			require.NoError(t, to.Close())
			rest, err := io.ReadAll(in)
			require.NoError(t, err)
			assert.Empty(t, rest)
			sess, ok := rt.Session(url)
			require.True(t, ok)
			assert.True(t, sess.Agreed().HHFR)
		})
	}
}
