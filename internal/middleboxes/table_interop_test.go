//go:build interop

package middleboxes_test

import "testing"

func TestInteropMiddleboxes(t *testing.T) {
	t.Run("eats", nginxEatsUpgrade)
	t.Run("hides", nginxEatsUpgradeAndHides)
	t.Run("passes", nginxPassesUpgrade)
	t.Run("quiet", nginxEndsQuietStreams)
	t.Run("tls", nginxTLS)
	t.Run("tls eats", nginxTLSEatsUpgrade)
	t.Run("h2", nginxH2)
	t.Run("h2 inside", nginxH2TLSInside)
	t.Run("haproxy http", haproxyHTTP)
	t.Run("haproxy tcp", haproxyTCP)
	t.Run("haproxy quiet", haproxyEndsQuietStreams)
	t.Run("squid http", squidHTTP)
	t.Run("squid hides", squidHTTPHides)
	t.Run("squid upgrade", squidPassesUpgrade)
	t.Run("squid connect", squidCONNECT)
	t.Run("portal http", portalHTTP)
	t.Run("portal https", portalHTTPS)
	t.Run("portal met", portalMet)
	t.Run("refusals", refusals)
	t.Run("safe", safeCalls)
	t.Run("one port", oneOpenPort)
	t.Run("binary", binaryBehindNginx)
	t.Run("pair", pairBehindNginx)
	t.Run("nat", natForgets)
	t.Run("nat under", natForgetsUnderAGuarantee)
	t.Run("closed port", closedPort)
}
