package main

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What Sandesha2 1.6.2 sends as a client of 1.1 that polls, which is its default: the same address
// of WS-MakeConnection in ReplyTo, AcksTo and Offer.
const (
	sandeshaPlace = "http://docs.oasis-open.org/ws-rx/wsmc/200702/anonymous?id=" +
		"urn:uuid:E13369E06D8F1D15661795494400394"
	sandeshaEnvelope = `<?xml version='1.0' encoding='UTF-8'?>` +
		`<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"><soapenv:Header>` +
		`<wsa:To xmlns:wsa="http://www.w3.org/2005/08/addressing">http://127.0.0.1:41101/ledger</wsa:To>%s` +
		`<wsa:MessageID xmlns:wsa="http://www.w3.org/2005/08/addressing">` +
		`urn:uuid:E13369E06D8F1D156617954944003%d</wsa:MessageID>` +
		`<wsa:Action xmlns:wsa="http://www.w3.org/2005/08/addressing">%s</wsa:Action>%s</soapenv:Header>` +
		`<soapenv:Body>%s</soapenv:Body></soapenv:Envelope>`
	sandeshaReplyTo = `<wsa:ReplyTo xmlns:wsa="http://www.w3.org/2005/08/addressing"><wsa:Address>` + sandeshaPlace +
		`</wsa:Address></wsa:ReplyTo>`
	sandeshaCreate = `<wsrm:CreateSequence xmlns:wsrm="http://docs.oasis-open.org/ws-rx/wsrm/200702"><wsrm:AcksTo>` +
		`<wsa:Address xmlns:wsa="http://www.w3.org/2005/08/addressing">` + sandeshaPlace + `</wsa:Address>` +
		`</wsrm:AcksTo>` +
		`<wsrm:Offer><wsrm:Identifier>urn:uuid:E13369E06D8F1D15661795494400397</wsrm:Identifier><wsrm:Endpoint>` +
		`<wsa:Address xmlns:wsa="http://www.w3.org/2005/08/addressing">` + sandeshaPlace + `</wsa:Address>` +
		`</wsrm:Endpoint></wsrm:Offer></wsrm:CreateSequence>`
	sandeshaSequence = `<wsrm:Sequence xmlns:wsrm="http://docs.oasis-open.org/ws-rx/wsrm/200702" ` +
		`soapenv:mustUnderstand="1"><wsrm:Identifier>%s</wsrm:Identifier><wsrm:MessageNumber>%d</wsrm:MessageNumber>` +
		`</wsrm:Sequence>`
	sandeshaAcknowledges = `<wsrm:SequenceAcknowledgement xmlns:wsrm="http://docs.oasis-open.org/ws-rx/wsrm/200702" ` +
		`soapenv:mustUnderstand="0"><wsrm:Identifier>urn:uuid:E13369E06D8F1D15661795494400397</wsrm:Identifier>` +
		`<wsrm:AcknowledgementRange Lower="1" Upper="%d" /></wsrm:SequenceAcknowledgement>`
	sandeshaAsks = `<wsmc:MakeConnection xmlns:wsmc="http://docs.oasis-open.org/ws-rx/wsmc/200702"><wsmc:Address>` +
		sandeshaPlace + `</wsmc:Address></wsmc:MakeConnection>`
)

// A client that polls gets each answer on the connection of its request, the reply to a message
// that comes again too, and nothing a second time when it asks.
func TestServeAnswersWhoPolls(t *testing.T) {
	services, stop := servicesHere(t, "--soap-rm", "all")
	defer stop()
	post := func(envelope string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, services["ledger"].URL,
			strings.NewReader(envelope))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "text/xml; charset=UTF-8")
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(body)
	}
	asks := fmt.Sprintf(sandeshaEnvelope, "", 99, "http://docs.oasis-open.org/ws-rx/wsmc/200702/MakeConnection", "",
		sandeshaAsks)
	status, answer := post(fmt.Sprintf(sandeshaEnvelope, sandeshaReplyTo, 95,
		"http://docs.oasis-open.org/ws-rx/wsrm/200702/CreateSequence", "", sandeshaCreate))
	require.Equal(t, http.StatusOK, status)
	id := regexp.MustCompile(`CreateSequenceResponse.*Identifier>(urn:uuid:[^<]*)<`).FindStringSubmatch(answer)
	require.NotNil(t, id, answer)
	for n := 1; n <= 6; n++ {
		blocks := fmt.Sprintf(sandeshaSequence, id[1], n)
		if n > 1 {
			blocks += fmt.Sprintf(sandeshaAcknowledges, n-1)
		}
		add := fmt.Sprintf(sandeshaEnvelope, sandeshaReplyTo, n, "urn:hhfr:peer:1/add", blocks,
			fmt.Sprintf(`<p:add xmlns:p="urn:hhfr:peer:1"><p:id>s11-%d</p:id><p:amount>1</p:amount></p:add>`, n))
		for range 2 { // as if its answer got lost
			status, answer = post(add)
			assert.Equal(t, http.StatusOK, status)
			assert.Contains(t, answer, fmt.Sprintf("<count>%d</count>", n))
			assert.Contains(t, answer, fmt.Sprintf("MessageNumber>%d<", n))
			assert.Contains(t, answer, fmt.Sprintf(`Upper="%d"`, n))
		}
		status, answer = post(asks)
		assert.Equal(t, http.StatusAccepted, status)
		assert.Empty(t, answer)
	}
}
