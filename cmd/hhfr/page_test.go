package main

import (
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/listing"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/page"
	"github.com/hhfr/hhfr/internal/shared"
)

// TestPageAsDecode: what a page lists and shows is what decode does, by the same filters.
func TestPageAsDecode(t *testing.T) {
	for _, name := range []string{"session.pcapng", "plain.pcapng", "datagrams.pcap", "upgraded.pcapng", "pump.pcap"} {
		file := shared.Testdata(t, "pcap", name)
		v, err := page.Open([]page.DroppedFile{{Name: filepath.Base(file), Octets: shared.Read(t, file)}})
		require.NoError(t, err)
		for _, filter := range []string{"", "reply && bytes > 600"} {
			_, stdout, stderr := do(t, "decode", "-o", "json", file, "-Y", filter)
			var want listing.DecodeReport
			require.NoError(t, json.Unmarshal([]byte(stdout), &want), stderr)
			require.NoError(t, v.Choose(filter, ""))
			require.Equal(t, len(want.Messages), v.Len(), name)
			for i, m := range want.Messages {
				row := v.Row(i)
				_, body := v.Show(i, false)
				assert.Equal(t, []string{m.Kind, m.State}, []string{row[2], row[7][:len(m.State)]}, "%s %v", name, row)
				if m.Number > 0 {
					assert.Equal(t, strconv.Itoa(m.Number), row[0])
				}
				assert.Equal(t, strings.ReplaceAll(string(m.Body), "\r", ""), body)
			}
		}
	}
}
