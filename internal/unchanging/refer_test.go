package unchanging_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
)

// ends are the two ends of a session with a common store.
type ends struct {
	*unchanging.Referrer
	*unchanging.Restorer
	store ctxstore.Store
}

func newEnds(t testing.TB, names ...soap.Name) *ends {
	e := &ends{store: memory.New(memory.Config{})}
	common := negotiate.NewCommon("http://127.0.0.1:1/")
	e.Referrer = unchanging.NewReferrer(unchanging.ReferrerConfig{
		CommonStore: unchanging.CommonStore{URL: common.URL, Store: e.store, Headers: names}, Common: common,
	})
	t.Cleanup(e.Close)
	e.Restorer = unchanging.NewRestorer(unchanging.RestorerConfig{
		Store:  e.store,
		Common: func(context.Context, string) (*negotiate.Common, error) { return common, nil },
	})
	return e
}

// settled refers to what a message has, once that is stored.
func (e *ends) settled(t testing.TB, message string) (by string, references []string) {
	t.Helper()
	require.Eventually(t, func() bool {
		octets, refs := e.Refer([]byte(message))
		by, references = string(octets), refs
		return refs != nil
	}, 10*time.Second, time.Millisecond)
	return by, references
}

var fleet = soap.Name{Space: "urn:example:fleet", Local: "Device"}

func device(more string) string {
	return `<f:Device xmlns:f="urn:example:fleet"` + more + `>` + strings.Repeat("0123456789", 60) + `</f:Device>`
}

// However a message is written, the receiver has it as it was.
func TestReferences(t *testing.T) {
	open, end := `<s:Envelope xmlns:s="`+xmlns.SOAP11+`"><s:Header>`, `</s:Header><s:Body/></s:Envelope>`
	open12 := `<e:Envelope xmlns:e="` + xmlns.SOAP12 + `"><e:Header> `
	end12 := "\r\n</e:Header><e:Body><x/></e:Body></e:Envelope>"
	long := strings.Repeat("x", 400)
	for name, m := range map[string]string{
		"1.1":       open + device("") + `<a/>` + end,
		"1.2":       open12 + device("") + end12,
		"no prefix": `<Envelope xmlns="` + xmlns.SOAP11 + `"><Header>` + device("") + `</Header><Body/></Envelope>`,
		"two prefixes": strings.NewReplacer("<s:Header>", `<t:Header xmlns:t="`+xmlns.SOAP11+`">`, "</s:Header>",
			"</t:Header>").Replace(open + device("") + end),
		"prefix c": strings.NewReplacer("<s:", "<c:", "</s:", "</c:", "xmlns:s", "xmlns:c").Replace(
			open + device("") + end),
		"declared outside": strings.Replace(open, `"><`, `" xmlns:f="urn:example:fleet"><`, 1) +
			`<!-- & --><f:Device>` + long + `</f:Device>` + end,
		"must understand": open + device(` s:mustUnderstand="1"`) + end,
		"empty tag, CDATA": `<?xml version="1.0"?>` + "\n" + open + `<f:Device xmlns:f="urn:example:fleet" a="` + long +
			`"/><b><![CDATA[</s:Header>]]></b>` + end,
		"a reference below": open + device("") + strings.Replace(end, "<s:Body/>",
			"<s:Body>urn:hhfr:fragment:</s:Body>", 1),
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnds(t, fleet)
			by, references := e.settled(t, m)
			assert.Len(t, references, 1)
			assert.Less(t, len(by), len(m))
			assert.Contains(t, by, `:mustUnderstand="1"`)
			parsed, err := soap.Parse([]byte(by), soap.Limits{})
			if err == nil { // who does not know references must not process it
				fault, ok := parsed.Mandatory()
				assert.True(t, ok)
				assert.Contains(t, fault.Reason, xmlns.WSContext)
			}
			whole, n, err := e.Restore(t.Context(), []byte(by))
			require.NoError(t, err)
			assert.Equal(t, 1, n)
			assert.Equal(t, m, string(whole))
		})
	}
}

// What is for others, about security, not named, or has not recurred stays in its message, and goes
// to no store.
func TestWhatStays(t *testing.T) {
	in := func(blocks string) string {
		return `<s:Envelope xmlns:s="` + xmlns.SOAP11 + `"><s:Header>` + blocks + `</s:Header><s:Body/></s:Envelope>`
	}
	e := newEnds(t, fleet)
	for _, m := range []string{
		in(device(` s:actor="http://schemas.xmlsoap.org/soap/actor/next"`)),
		in(device(` xmlns:u="` + xmlns.WSU + `" u:Id="signed"`)),
		in(`<f:Device xmlns:f="urn:example:fleet"><w:UsernameToken xmlns:w="` + xmlns.WSSE + `">` +
			strings.Repeat("secret", 100) + `</w:UsernameToken></f:Device>`),
		in(strings.ReplaceAll(device(""), "Device", "Other")),
		in("") + device(""),
		strings.Replace(in(device("")), "?", "", 1)[:300],
		`<!DOCTYPE s>` + in(device("")),
		"", "no XML", in("<f:Device/>"),
	} {
		for range 5 {
			_, references := e.Refer([]byte(m))
			assert.Empty(t, references, m)
		}
	}
	for i := range 100 { // named, but another one each time
		_, references := e.Refer([]byte(in(device(fmt.Sprintf(` n="%d"`, i)))))
		assert.Empty(t, references)
	}
	e.Close()
	for info := range e.store.List(t.Context(), "") {
		t.Errorf("%s is in the store", info.URI)
	}
}

// broken is a store that fails until it is mended.
type broken struct {
	ctxstore.Store
	mu    sync.Mutex
	tries int
}

func (b *broken) Put(context.Context, string, []byte, ctxstore.PutOptions) (uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tries++
	return 0, &ctxstore.Error{Code: ctxstore.Full}
}

// A store that is full is tried once in a while, and told of once; messages travel whole.
func TestFullStore(t *testing.T) {
	store := &broken{}
	var log strings.Builder
	common := negotiate.NewCommon("x:")
	r := unchanging.NewReferrer(unchanging.ReferrerConfig{
		CommonStore: unchanging.CommonStore{Store: store, Headers: []soap.Name{fleet}}, Common: common,
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	for i := range 50 {
		m := `<s:Envelope xmlns:s="` + xmlns.SOAP11 + `"><s:Header>` + device(fmt.Sprintf(` n="%d"`, i%3)) +
			`</s:Header><s:Body/></s:Envelope>`
		_, references := r.Refer([]byte(m))
		require.Empty(t, references)
		r.Settle()
	}
	r.Close()
	assert.Equal(t, 1, store.tries)
	assert.Equal(t, 1, strings.Count(log.String(), "level=WARN"), log.String())
}

// An entry that somebody changed, or moved to another name, is put into no message.
func TestChangedFragments(t *testing.T) {
	e := newEnds(t, fleet)
	m := `<s:Envelope xmlns:s="` + xmlns.SOAP11 + `"><s:Header>%s</s:Header><s:Body/></s:Envelope>`
	by, _ := e.settled(t, fmt.Sprintf(m, device("")))
	other, _ := e.settled(t, fmt.Sprintf(m, device(` n="2"`)))
	var uris []string
	for info := range e.store.List(t.Context(), ctxstore.FragmentPrefix) {
		uris = append(uris, info.URI)
	}
	require.Len(t, uris, 2)
	first, err := e.store.Get(t.Context(), uris[0])
	require.NoError(t, err)
	_, err = e.store.Put(t.Context(), uris[1], first.Value, ctxstore.PutOptions{})
	require.NoError(t, err)
	first.Value[20] ^= 1
	_, err = e.store.Put(t.Context(), uris[0], first.Value, ctxstore.PutOptions{})
	require.NoError(t, err)
	for _, message := range []string{by, other} {
		_, _, err := e.Restore(t.Context(), []byte(message))
		var lost *unchanging.Unrestored
		require.ErrorAs(t, err, &lost)
		assert.ErrorContains(t, err, "not what was put")
	}
}

// Whatever a message is, request or reply, it is the same again, or travels as it is.
func FuzzReferences(f *testing.F) {
	f.Add([]byte(`<s:Envelope xmlns:s="` + xmlns.SOAP11 + `"><s:Header>` + device("") +
		`</s:Header><s:Body/></s:Envelope>`))
	f.Add([]byte(`<Envelope xmlns="` + xmlns.SOAP12 + `"><Header>` + device("") + `<x/>` + device("") +
		`</Header></Envelope>`))
	f.Fuzz(func(t *testing.T, message []byte) {
		e := newEnds(t, fleet)
		for range 3 {
			by, references := e.Refer(message)
			e.Settle()
			if references == nil {
				continue
			}
			whole, n, err := e.Restore(t.Context(), by)
			require.NoError(t, err)
			assert.Equal(t, len(references), n)
			assert.Equal(t, string(message), string(whole))
		}
		for range 3 {
			e.exchange(t, string(message))
		}
	})
}

// Whatever a field of a request says, a reply refers to nothing that it does not name.
func FuzzNamedFragments(f *testing.F) {
	e, reply := newEnds(f, fleet), replyWith(device(""))
	for range 4 {
		e.exchange(f, reply)
	}
	taken := e.Take()
	f.Add(taken.Field())
	f.Add(taken.Field() + ", " + taken.Field())
	f.Add(strings.Repeat("0", 32) + taken.Field()[32:] + ",")
	f.Add("urn:hhfr:fragment:" + taken.Field())
	f.Add("")
	f.Fuzz(func(t *testing.T, field string) {
		made := e.Reply(field, never)
		if made == nil {
			return
		}
		by, references := made.Refer([]byte(reply))
		if references == 0 {
			return
		}
		require.Contains(t, field, taken.Field())
		whole, n, err := e.RestoreReply(taken, by)
		require.NoError(t, err)
		require.Equal(t, references, n)
		require.Equal(t, reply, string(whole))
	})
}
