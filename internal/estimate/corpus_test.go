package estimate

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// So it is for the captures of plain SOAP that others made.
func TestEstimateAgreesWithThePairOnTheCorpus(t *testing.T) {
	dir := shared.Dir(t, "corpus", "pcap", "soap")
	for _, name := range []string{"corelight-omi-wsman", "dist_sys-soap-zeep-spyne",
		"suricata-output-eve-ftp-data-upnp", "ndpi-soap-utf16le-outoforder"} {
		t.Run(name, func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join(dir, name+".pcap"))
			require.NoError(t, err)
			agree(t, b, "gprs")
		})
	}
}
