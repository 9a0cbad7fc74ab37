package flow_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/flow"
	"github.com/hhfr/hhfr/internal/shared"
)

// corpusFiles are the captures of the shared corpus.
func corpusFiles(tb testing.TB) []string {
	tb.Helper()
	return shared.Files(tb, shared.Dir(tb, "corpus", "pcap"), nil)
}

// tally is what the corpus test counts of one capture.
type tally struct {
	stats                              flow.Stats
	flows                              []*whole
	http                               []told
	requests, replies, interim, broken int
}

func read(tb testing.TB, b []byte) tally {
	tb.Helper()
	var s tally
	f, err := flow.Open(bytes.NewReader(b))
	if err != nil {
		return s
	}
	s.stats, err = flow.Read(gather(flow.Limits{}, func(f *whole) error {
		checkFlow(tb, f)
		s.flows = append(s.flows, f)
		h := httpOf(tb, f, flow.HTTPConfig{})
		s.http = append(s.http, h)
		for _, e := range h.exchanges {
			for _, m := range append([]*flow.HTTPMessage{e.Request, e.Reply}, e.Interim...) {
				if m != nil {
					checkMessage(tb, m)
					if !m.Complete() {
						s.broken++
					}
				}
			}
			if e.Request != nil {
				s.requests++
			}
			if e.Reply != nil {
				s.replies++
			}
			s.interim += len(e.Interim)
		}
		return nil
	}), f)
	require.NoError(tb, err)
	return s
}

// checkFlow checks what holds for every flow.
func checkFlow(tb testing.TB, f *whole) {
	tb.Helper()
	require.Positive(tb, f.ID)
	for _, d := range f.dirs {
		end := int64(0)
		for i, r := range d {
			require.NotEmpty(tb, r.data)
			require.NotEmpty(tb, r.marks)
			require.Zero(tb, r.at[0])
			if i > 0 {
				require.Positive(tb, r.gapBefore)
			}
			require.Equal(tb, end+max(r.gapBefore, 0), r.offset)
			end = r.end()
			for j := 1; j < len(r.at); j++ {
				require.Greater(tb, r.at[j], r.at[j-1])
			}
			require.Less(tb, r.at[len(r.at)-1], len(r.data))
		}
	}
}

func checkMessage(tb testing.TB, m *flow.HTTPMessage) {
	tb.Helper()
	require.NotEmpty(tb, m.Octets)
	require.GreaterOrEqual(tb, m.Wire, int64(len(m.Octets)))
	require.GreaterOrEqual(tb, m.LastPacket, 1)
	if m.Complete() {
		require.NotEmpty(tb, m.Octets)
		require.Zero(tb, m.Missing)
	}
}

// counts are what a capture contains: TCP connections, UDP datagrams, requests, replies, interim
// replies, messages not complete, gaps. Checked with tshark; where the two differ, the comment says
// why.
var counts = map[string][7]int{
	"soap/arkime-wireshark-retrans-xmlpost.pcap": {1, 0, 4, 4, 0, 0, 0},
	"soap/corelight-omi-wsman.pcap":              {1, 0, 1, 1, 0, 0, 0},
	"soap/dist_sys-soap-zeep-spyne.pcap":         {4, 0, 4, 4, 0, 0, 0},
	"soap/ndpi-fuzzed-soap-error.pcapng": {
		2,
		0,
		2,
		0,
		0,
		0,
		2,
	}, // the version in the reply is damaged; a port is reused
	"soap/ndpi-soap-utf16le-outoforder.pcap": {
		3,
		0,
		2,
		1,
		0,
		1,
		0,
	}, // the out-of-order request is whole here; the other has a damaged port
	"soap/ndpi-upnp-wsdiscovery-udp.pcap":         {0, 14, 0, 0, 0, 0, 0},
	"soap/suricata-output-eve-ftp-data-upnp.pcap": {80, 301, 77, 77, 0, 0, 0},
	"arkime/socks5-http-302-frag.pcap":            {1, 0, 1, 1, 0, 0, 0},
	"arkime/v6-http.pcap":                         {1, 8, 1, 1, 0, 0, 0},
	"gopacket/test_loopback.pcap":                 {2, 0, 3, 3, 0, 0, 0},
	"ndpi/http_starting_with_reply.pcapng":        {1, 0, 2, 3, 0, 0, 0},
	"ndpi/ipp.pcap":                               {3, 0, 4, 4, 4, 0, 0},
	"suricata/bug-4810-pppoe-session-http.pcap":   {1, 0, 1, 1, 0, 0, 0},
	"suricata/http-gap-simple-input.pcap": {
		1,
		0,
		3,
		3,
		0,
		1,
		1,
	}, // tshark gives up on replies after a gap
	"suricata/http-gap-double-input.pcap":                  {1, 0, 3, 3, 0, 1, 2},
	"suricata/http-gap-beyond-body-input.pcap":             {1, 0, 3, 2, 0, 1, 1},
	"suricata/http-multiple100-input.pcap":                 {1, 0, 1, 1, 2, 0, 0},
	"zeek/http-100-continue.pcap":                          {1, 0, 1, 1, 1, 0, 0},
	"zeek/http-1000-requests-one-dropped-response.pcap.gz": {1, 0, 1000, 999, 0, 0, 1},
	"zeek/http-261-variant-01-chunk_2pow64_overflow.pcap":  {1, 0, 1, 0, 0, 1, 0},
	"zeek/http-261-variant-04-te_cl_desync.pcap":           {1, 0, 2, 0, 0, 0, 0}, // the smuggled one counts
	"zeek/http-get_nosyn.pcap":                             {1, 0, 1, 1, 0, 0, 0},
	"zeek/ipv4-fragmented-1.pcap":                          {0, 1, 0, 0, 0, 0, 0},
	"zeek/mpls-in-vlan.pcap":                               {3, 0, 2, 0, 0, 0, 0},
	"zeek/nflog-http.pcap":                                 {1, 0, 1, 1, 0, 0, 0},
	"zeek/tcp-handshake-reorder.pcap":                      {1, 0, 1, 1, 0, 0, 0},
	"zeek/tcp-tcp-fast-open.pcap":                          {2, 0, 2, 2, 0, 0, 0},
	"zeek/tunnels-gre-over-udp-4754.pcap":                  {1, 4, 1, 1, 0, 0, 0},
	"zeek/tunnels-vxlan-encapsulated-http.pcap":            {1, 0, 1, 1, 0, 0, 0},
	"zeek/vlan-collisions.pcap":                            {3, 0, 3, 3, 0, 0, 0}, // tshark mixes the VLANs
	"zeek/vlan-qinqinq.pcap":                               {1, 0, 1, 1, 0, 0, 0},
}

func TestCorpus(t *testing.T) {
	left := maps.Clone(counts)
	for _, path := range corpusFiles(t) {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		s := read(t, b)
		name := filepath.ToSlash(filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path)))
		if want, ok := left[name]; ok {
			delete(left, name)
			got := [7]int{s.stats.TCPFlows, s.stats.UDPDatagrams, s.requests, s.replies, s.interim, s.broken,
				s.stats.Gaps}
			assert.Equal(t, want, got, name)
		}
		undecoded := 0
		for _, n := range s.stats.Undecoded {
			undecoded += n
		}
		assert.LessOrEqual(t, undecoded+s.stats.Fragments+s.stats.UDPDatagrams, s.stats.Packets, name)
		octets := int64(0)
		for _, f := range s.flows {
			for _, d := range f.dirs {
				for _, r := range d {
					octets += int64(len(r.data))
				}
			}
		}
		assert.Equal(t, s.stats.TCPOctets, octets, name)
		for i := 1; i < 12; i++ { // cut anywhere, it is read up to the cut
			cut := read(t, b[:len(b)*i/12])
			assert.LessOrEqual(t, cut.stats.Packets, s.stats.Packets, name)
		}
	}
	assert.Empty(t, left, "captures of the table that are not there")
}

func TestEnvelopesOfARealSession(t *testing.T) {
	for _, path := range corpusFiles(t) {
		if filepath.Base(path) != "dist_sys-soap-zeep-spyne.pcap" {
			continue
		}
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		soap := 0
		for _, h := range read(t, b).http {
			for _, e := range h.exchanges {
				for _, m := range []*flow.HTTPMessage{e.Request, e.Reply} {
					if m != nil && bytes.Contains(octets(m), []byte("Envelope>")) {
						soap++
					}
				}
			}
		}
		assert.Equal(t, 4, soap) // two calls; the other two exchanges fetch the WSDL
		return
	}
	t.Fatal("the capture is not there")
}
