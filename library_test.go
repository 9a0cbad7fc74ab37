package hhfr_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// The programs of docs/library.md are complete and short, and do what the page says.
func TestLibraryPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("docs", "library.md"))
	require.NoError(t, err)
	var texts []string
	for _, block := range goBlock.FindAllStringSubmatch(string(page), -1) {
		texts = append(texts, block[1])
		lines := 0
		for line := range strings.Lines(block[1]) {
			if strings.TrimSpace(line) != "" {
				lines++
			}
		}
		assert.LessOrEqual(t, lines, 25, "%s", block[1])
	}
	require.Len(t, texts, 6)
	const first, client, server, transport, handler, reading = 0, 1, 2, 3, 4, 5
	assert.Regexp(t, `^package main\n\nimport \(\n\t"context"\n\n\t"github.com/hhfr/hhfr"\n\)\n`, texts[first],
		"no other import")
	programs := build(t, texts)

	for _, by := range []int{server, handler} {
		addr := programs.background(t, by)
		assert.Equal(t, "200 <Envelope>…</Envelope>\n", programs.run(t, first, addr).stderr)
		assert.Equal(t, "200 true <Envelope>…</Envelope> <nil>\n", programs.run(t, client, addr).stdout)
		assert.Equal(t, "200 OK <Envelope>…</Envelope> <nil>\n", programs.run(t, transport, addr).stdout)
	}
	nobody := programs.run(t, client, "127.0.0.1:1")
	assert.Contains(t, nobody.stdout, "may be sent again: true hhfr: no connection")
	lines := strings.Split(strings.TrimSpace(programs.run(t, reading, "",
		filepath.Join("testdata", "pcap", "session.pcapng")).stdout), "\n")
	assert.Greater(t, len(lines), 4)
	for _, line := range lines {
		assert.Regexp(t, `^\d+ .*<nil>$`, line)
	}
}

type printed struct{ stdout, stderr string }

// programs is one binary with all programs of the page; an environment variable holds the address.
type programs string

func build(t *testing.T, texts []string) programs {
	t.Helper()
	replaced := map[string]string{}
	dir := t.TempDir()
	add := func(name, text string) {
		// The file is only overlaid on the module, so that the module's own packages are found and
		// nothing else sees it.
		here, err := filepath.Abs(filepath.Join("_library", name))
		require.NoError(t, err)
		replaced[here] = filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(replaced[here], []byte(text), 0o600))
	}
	calls := ""
	for i, text := range texts {
		text = strings.Replace(text, "func main()", fmt.Sprintf("func program%d()", i), 1)
		text = strings.ReplaceAll(text, `"http://127.0.0.1:8080/`, `"http://"+address+"/`)
		add(fmt.Sprintf("program%d.go", i), strings.ReplaceAll(text, `"127.0.0.1:8080"`, "address"))
		calls += fmt.Sprintf("\tcase \"%d\":\n\t\tprogram%d()\n", i, i)
	}
	add("main.go", "package main\n\nimport \"os\"\n\nvar address = os.Getenv(\"ADDRESS\")\n\n"+
		"func main() {\n\tswitch os.Getenv(\"PROGRAM\") {\n"+calls+"\t}\n}\n")
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	require.NoError(t, err)
	over, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "programs.exe")
	require.NoError(t, os.WriteFile(over, overlay, 0o600))
	out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", over, "-o", binary,
		"./_library").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return programs(binary)
}

func (p programs) command(ctx context.Context, number int, addr string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, string(p), args...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("PROGRAM=%d", number), "ADDRESS="+addr)
	return cmd
}

// run runs a program to its end.
func (p programs) run(t *testing.T, number int, addr string, args ...string) printed {
	t.Helper()
	cmd := p.command(t.Context(), number, addr, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run() // its output is checked
	return printed{stdout.String(), stderr.String()}
}

// background runs a server until the test ends, and returns its address once it answers.
func (p programs) background(t *testing.T, number int) string {
	t.Helper()
	addr := shared.Addr(t)
	ctx, cancel := context.WithCancel(context.Background())
	cmd := p.command(ctx, number, addr)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	for {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
		if err == nil {
			require.NoError(t, conn.Close())
			return addr
		}
		select {
		case <-ended:
			t.Fatalf("%s", &stderr)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
