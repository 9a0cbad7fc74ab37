//go:build interop

package middleboxes_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

var update = flag.Bool("update", false, "write the table of docs/middleboxes.md anew")

// place is something between a client and a server: a row of the table.
type place struct {
	between, becomes, why, configure string
	holds                            func(*testing.T)
}

const (
	hhfrStream = "stream"
	plainSOAP  = "plain SOAP"
)

var places = []place{
	{"nginx, as it comes (with HTTP/1.0 or 1.1, kept alive or not)", hhfrStream,
		"It takes Upgrade out. The answer's field names the server's port, and that is reached.", "", nginxEatsUpgrade},
	{"the same, the server's port closed", plainSOAP, "One warning says which port is closed.",
		"`proxy_http_version 1.1`, and Upgrade and Connection by `proxy_set_header`, below; or open the port.",
		nginxEatsUpgradeAndHides},
	{"nginx that passes Upgrade", hhfrStream, "The connection of the first call is upgraded, through nginx.", "",
		nginxPassesUpgrade},
	{"nginx that denies paths", hhfrStream,
		"It judges the first call. Over the stream every path of the server can be asked (docs/security.md).",
		"Pass Upgrade only where that may be; else have the server judge.", nginxGuardsOneRequest},
	{"nginx with `proxy_read_timeout`", hhfrStream,
		"A stream that is silent for longer ends (60 s if not set); the session goes on over the next one. " +
			"Counted over three such streams: 7 calls made, 7 answered, each processed once.",
		"`proxy_read_timeout` and `proxy_send_timeout` as long as clients are silent.", nginxEndsQuietStreams},
	{"nginx with TLS, HTTP behind it, that passes Upgrade", hhfrStream,
		"The stream is inside the TLS of the first call.", "", nginxTLS},
	{"the same, as it comes", plainSOAP,
		"The server sees HTTP and names a port without TLS, which a client of an https URL does not take.",
		"Pass Upgrade; or have the server take TLS (`--cert`, `proxy_pass https:`).", nginxTLSEatsUpgrade},
	{"nginx with HTTP/2, HTTP behind it, that passes Upgrade", hhfrStream,
		"HTTP/2 has no Upgrade: the call is answered plainly, and a request beside it, by HTTP/1.1, is upgraded.", "",
		nginxH2},
	{"nginx with HTTP/2, TLS behind it", hhfrStream, "The answer's field names the server's port, and that is reached.",
		"", nginxH2TLSInside},
	{"HAProxy, `mode http`", hhfrStream,
		"It upgrades no request with a body: the call is answered plainly, and a request beside it is upgraded.", "",
		haproxyHTTP},
	{"HAProxy, `mode tcp`", hhfrStream, "It is as if it were not there; sessions are met again, too.", "", haproxyTCP},
	{"HAProxy with `timeout tunnel`", hhfrStream,
		"As with `proxy_read_timeout`; `timeout client` and `timeout server` count without it.",
		"`timeout tunnel 1h`.", haproxyEndsQuietStreams},
	{"squid as forward proxy, http URL", hhfrStream,
		"It takes Upgrade out. The answer's field names the server's port, and that is reached without squid.", "",
		squidHTTP},
	{"the same, the server reached through squid only", hhfrStream,
		"The direct stream goes through CONNECT, where that is allowed to the server's port.",
		"", squidHTTPTunnels},
	{"the same, CONNECT not allowed", plainSOAP, "One warning says which port is not reached.",
		"`http_upgrade_request_protocols hhfr allow all`; or an https URL.", squidHTTPHides},
	{"squid with `http_upgrade_request_protocols hhfr allow all`", hhfrStream,
		"The connection of the first call is upgraded.", "", squidPassesUpgrade},
	{"squid, https URL", hhfrStream, "The first call is upgraded inside CONNECT.", "", squidCONNECT},
	{"squid, https URL, met before", hhfrStream, "What cannot be reached directly is asked by a first call again.", "",
		squidCONNECTMet},
	{"a captive portal, http URL", plainSOAP,
		"Its page goes to the caller as the answer. The next call asks again, and has a stream.", "", portalHTTP},
	{"a captive portal, https URL", "no connection",
		"Its certificate is none of the server's: nothing is sent. The next call asks again.", "", portalHTTPS},
	{"a captive portal, met before", plainSOAP,
		"What is no hello is no reply either: the call goes by the next way, and gets the page.", "", portalMet},
	{"a proxy that answers Upgrade with 426", plainSOAP,
		"The call is repeated without the fields. Nobody asks again for ten minutes.", "", refusals},
	{"a proxy that answers Upgrade with 400 or 501", plainSOAP,
		"The answer is that of the call; safe methods are repeated. Nobody asks again for ten minutes.",
		"`--mode explicit`.", safeCalls},
	{"a proxy that ends connections with Upgrade", plainSOAP,
		"The call's fate is unknown; safe methods are repeated. Nobody asks again for ten minutes.",
		"`--mode explicit`.", refusals},
	{"a firewall, open for the URL's port", hhfrStream, "All goes over that port.", "", oneOpenPort},
	{"the same, and a server with streams at another port", hhfrStream,
		"First calls are upgraded; offers (`--mode explicit`) end in plain SOAP, with one warning.",
		"`--listen` without `--tcp`.", closedPort},
	{"nginx and the commands", hhfrStream,
		"As above; where the port of `--tcp` is closed, one warning with what helps.", "", binaryBehindNginx},
	{"nginx between a pair of proxies", hhfrStream, "As above; clients and service know nothing of it.", "",
		pairBehindNginx},
	{"a NAT that forgets connections", hhfrStream,
		"Probes keep it from that, from 30 s of silence on. If it does, the stream ends, the call that found out has " +
			"an unknown fate, and the session goes on over the next one.",
		"", natForgets},
	{"the same, `--assurance at-least-once`", hhfrStream,
		"No fate is unknown: what was not done goes over the next stream.", "", natForgetsUnderAGuarantee},
}

// rows are the rows of the page's table.
func rows() string {
	var b strings.Builder
	b.WriteString("| between | stream or plain SOAP | why | what to configure |\n|---|---|---|---|\n")
	for _, p := range places {
		b.WriteString("| " + strings.Join([]string{p.between, p.becomes, p.why, p.configure}, " | ") + " |\n")
	}
	return strings.ReplaceAll(b.String(), "|  |", "| |")
}

// TestInteropMiddleboxes checks each row of the table, prints its outcome, and compares the table
// with the page.
func TestInteropMiddleboxes(t *testing.T) {
	var came strings.Builder
	for _, p := range places {
		outcome := "not run"
		t.Run(p.between, func(t *testing.T) {
			defer func() {
				switch {
				case t.Failed():
					outcome = "NOT as the table says"
				case t.Skipped():
					outcome = "skipped"
				default:
					outcome = p.becomes
				}
			}()
			p.holds(t)
		})
		came.WriteString(outcome + ": " + p.between + "\n")
	}
	t.Log("\n" + came.String())
	path := shared.Testdata(t, "..", "docs", "middleboxes.md")
	page := string(shared.Read(t, path))
	before, rest, found := strings.Cut(page, "| between |")
	require.True(t, found, "%s has no table", path)
	_, after, _ := strings.Cut(rest, "\n\n")
	want := before + rows() + "\n" + after
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	assert.Equal(t, want, page, "write it anew with -update")
}
