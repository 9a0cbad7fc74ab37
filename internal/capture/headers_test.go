package capture_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/ctxstore"
)

const (
	tenant  = `<t:Tenant xmlns:t="urn:example:tenant"><t:Name>Example Works</t:Name></t:Tenant>`
	replyTo = `<wsa:ReplyTo xmlns:wsa="http://www.w3.org/2005/08/addressing">` +
		`<wsa:Address>urn:me</wsa:Address></wsa:ReplyTo>`
)

// reference is the reference that replaces tenant.
var reference = string(unchanging.TakeOut([]string{tenant}, []byte(tenant)))

// withHeaders are messages that have the blocks in all forms, and messages that look as if blocks
// had been taken out.
func withHeaders() (list [][]byte) {
	headers := []string{
		tenant + replyTo, replyTo, "", replyTo + "<x/>" + tenant + replyTo,
		reference, unchanging.Mark + "-/>" + tenant, unchanging.Mark,
	}
	for n := range 60 {
		list = append(list, fmt.Appendf(nil, `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/">`+
			`<s:Header>%s</s:Header><s:Body><op><n>%d</n><v>%s</v></op></s:Body></s:Envelope>`,
			headers[n%len(headers)], n, strings.Repeat("v", n*n)))
	}
	return append(list, []byte(unchanging.Mark), []byte(reference+replyTo), nil)
}

// Law 3: headers that were taken out of messages are put back, from the negotiation in the capture
// or the context in the store.
func TestLaw3WithHeaders(t *testing.T) {
	rec := record(t, append(withHeaders(), mixed(t)...), 4096, tenant, replyTo)
	for _, one := range runsOf(t, rec.file, nil) {
		assert.False(t, bytes.Contains(one.octets, []byte("Example Works")))
	}
	requireLaw3(t, rec)
}

// From the middle on, too: then only the context in the store has what was agreed.
func TestHeadersFromTheMiddle(t *testing.T) {
	rec := record(t, withHeaders(), 1024, tenant, replyTo)
	store := copyStore(t, rec.server)
	for i, one := range runsOf(t, rec.file, nil) {
		half := len(one.octets) / 2
		second := run{capture.RunName(1, i, int64(half)), one.octets[half:]}
		r, err := decodeStreams(t, []run{second}, capture.DecodeConfig{Store: store})
		require.NoError(t, err)
		verified := 0
		for _, m := range r.Messages {
			if m.State == capture.Verified {
				verified++
				require.True(t, bytes.Equal(rec.messages[m.Exchange-1], m.Body), "exchange %d", m.Exchange)
			}
		}
		assert.Greater(t, verified, 10)
	}
}

// A third party without the context is told so, and gets nothing that looks whole and is not. It
// gets messages without such headers.
func TestHeadersWithoutTheContext(t *testing.T) {
	rec := record(t, withHeaders(), 4096, tenant, replyTo)
	runs := runsOf(t, rec.file, nil)
	r, err := decodeStreams(t, runs, capture.DecodeConfig{})
	require.NoError(t, err)
	assert.True(t, r.Partial())
	whole, lacking := 0, 0
	for _, m := range r.Messages {
		want := rec.messages[m.Exchange-1]
		if m.Whole() {
			whole++
			require.True(t, bytes.Equal(want, m.Body))
			continue
		}
		lacking++
		require.Equal(t, capture.Undecodable, m.State)
		assert.Equal(t, ctxstore.SessionURI(m.Session), m.LacksContext)
		assert.Contains(t, m.Why, "neither capture nor store has the context of its session")
		assert.Nil(t, m.Body)
		if bytes.Contains(want, []byte("<op>")) {
			assert.Equal(t, "op", m.Operation.Local)
		}
	}
	assert.Greater(t, whole, 10)
	assert.Greater(t, lacking, 50)

	// The context of another session does not fit.
	store := copyStore(t, rec.server)
	for info, err := range store.List(t.Context(), ctxstore.SessionPrefix) {
		require.NoError(t, err)
		entry, err := store.Get(t.Context(), info.URI)
		require.NoError(t, err)
		less := bytes.Replace(entry.Value, []byte("<n:UnchangingHeader>&lt;wsa"), []byte("<n:Other>&lt;wsa"), 1)
		const end = "wsa:ReplyTo&gt;</n:"
		less = bytes.Replace(less, []byte(end+"UnchangingHeader>"), []byte(end+"Other>"), 1)
		require.NotEqual(t, entry.Value, less)
		_, err = store.Put(t.Context(), info.URI, less, ctxstore.PutOptions{})
		require.NoError(t, err)
	}
	r, err = decodeStreams(t, runs, capture.DecodeConfig{Store: store})
	require.NoError(t, err)
	unfit := 0
	for _, m := range r.Messages {
		if m.Whole() {
			require.True(t, bytes.Equal(rec.messages[m.Exchange-1], m.Body))
		} else if m.LacksContext != "" {
			unfit++
		}
	}
	assert.Positive(t, unfit)
	assert.Less(t, unfit, lacking)
}

// In a session without unchanging headers nothing is a reference.
func TestNoHeadersNoReferences(t *testing.T) {
	rec := record(t, withHeaders(), 4096)
	requireLaw3(t, rec)
}
