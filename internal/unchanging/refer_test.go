package unchanging_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/clock"
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
		octets, refs := e.Refer(t.Context(), []byte(message))
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
				assert.Contains(t, fault.Reason, xmlns.Reference)
			}
			whole, n, err := e.Restore(t.Context(), []byte(by))
			require.NoError(t, err)
			assert.Equal(t, 1, n)
			assert.Equal(t, m, string(whole))
		})
	}
}

// A reference has at most 80 bytes where the prefix of the envelope has at most 8, however many
// blocks it stands for; one without a prefix declares one.
func TestLengthOfReferences(t *testing.T) {
	for prefix, most := range map[string]int{"s:": 73, "soap:": 76, "SOAP-ENV:": 80, "": 125} {
		e := newEnds(t, fleet)
		m := fmt.Sprintf(`<%[1]sEnvelope %[2]s="%[3]s"><%[1]sHeader>%[4]s</%[1]sHeader><%[1]sBody/></%[1]sEnvelope>`,
			prefix,
			strings.TrimSuffix("xmlns:"+prefix, ":"), xmlns.SOAP11, device("")+"\n "+device(` n="2"`)+device(` n="3"`))
		var by []byte
		var references []string
		for range 2 { // the second message waits for the entry
			by, references = e.Refer(t.Context(), []byte(m))
		}
		require.Len(t, references, 1, prefix)
		blocks := len(device("") + "\n " + device(` n="2"`) + device(` n="3"`))
		assert.LessOrEqual(t, len(by)-(len(m)-blocks), most, "%s", by)
		whole, n, err := e.Restore(t.Context(), by)
		require.NoError(t, err)
		assert.Equal(t, 1, n)
		assert.Equal(t, m, string(whole))
	}
}

// References in the form of earlier versions, a context of WS-Context, are put back as well.
func TestReferencesOfEarlierVersions(t *testing.T) {
	e := newEnds(t, fleet)
	long, err := e.Keep(t.Context(), []string{device("")})
	require.NoError(t, err)
	const message = `<s:Envelope xmlns:s="` + xmlns.SOAP11 + `"><s:Header>%s</s:Header><s:Body/></s:Envelope>`
	const context = `<c:context xmlns:c="` + xmlns.WSContext + `" s:mustUnderstand="1"><c:context-identifier>%s` +
		`</c:context-identifier></c:context>`
	whole, n, err := e.Restore(t.Context(), fmt.Appendf(nil, message, fmt.Sprintf(context, long[0])))
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	assert.Equal(t, fmt.Sprintf(message, device("")), string(whole))
	forged := long[0][:len(long[0])-4] + "0000"
	_, _, err = e.Restore(t.Context(), fmt.Appendf(nil, message, fmt.Sprintf(context, forged)))
	require.ErrorContains(t, err, "was not made by the peers")
}

// A short reference that somebody made without the key is put into no message, whatever of it is
// another.
func TestForgedReferences(t *testing.T) {
	e := newEnds(t, fleet)
	by, references := e.settled(t, replyWith(device("")))
	require.Len(t, references[0], 28)
	for i := range references[0] {
		other := []byte(references[0])
		other[i] ^= 1
		_, n, err := e.Restore(t.Context(), []byte(strings.Replace(by, references[0], string(other), 1)))
		assert.Zero(t, n)
		if err == nil { // it is no reference any more, and stays what it is: a block that must be understood
			continue
		}
		require.ErrorContains(t, err, "was not made by the peers", i)
	}
}

// Messages that are under way at once put a block there once, and all but the first refer to it.
func TestReferencesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnds(t, fleet)
		slow := &slowStore{Store: e.store}
		e.Referrer = unchanging.NewReferrer(unchanging.ReferrerConfig{
			CommonStore: unchanging.CommonStore{Store: slow, Headers: []soap.Name{fleet}},
			Common:      negotiate.NewCommon("x:"),
		})
		defer e.Close()
		message := []byte(replyWith(device("") + device(` n="2"`)))
		var referring atomic.Int64
		began := time.Now()
		var all sync.WaitGroup
		for range 32 {
			all.Go(func() {
				if _, references := e.Refer(t.Context(), message); len(references) == 1 {
					referring.Add(1)
				}
			})
		}
		all.Wait()
		assert.EqualValues(t, 31, referring.Load())
		assert.EqualValues(t, 1, slow.puts.Load())
		assert.Equal(t, slowness, time.Since(began))
	})
}

// A message waits for a store that is too slow for 2 s at most, and those behind it for no longer
// than until then.
func TestReferencesWaitForABoundedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := unchanging.NewReferrer(unchanging.ReferrerConfig{
			CommonStore: unchanging.CommonStore{
				Store:   &slowStore{Store: memory.New(memory.Config{}), lasts: 8 * time.Second},
				Headers: []soap.Name{fleet},
			}, Common: negotiate.NewCommon("x:"),
		})
		defer r.Close()
		message, began := []byte(replyWith(device(""))), time.Now()
		for range 5 {
			_, references := r.Refer(t.Context(), message)
			assert.Empty(t, references)
		}
		assert.Equal(t, 2*time.Second, time.Since(began))
		time.Sleep(7 * time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, references := r.Refer(ctx, message)
		assert.Len(t, references, 1)
		_, references = r.Refer(ctx, []byte(replyWith(device(` n="2"`))))
		assert.Empty(t, references, "its context is done")
	})
}

const slowness = 500 * time.Millisecond

// slowStore takes a while for each entry, and counts them.
type slowStore struct {
	ctxstore.Store
	lasts time.Duration // 0: slowness
	puts  atomic.Int64
}

func (s *slowStore) Put(ctx context.Context, uri string, v []byte, o ctxstore.PutOptions) (uint64, error) {
	s.puts.Add(1)
	time.Sleep(cmp.Or(s.lasts, slowness))
	return s.Store.Put(ctx, uri, v, o)
}

// The next session with the same service and store of its own has the same key, refers from its
// first message on, and puts nothing again: until the entries are about to end, or one is refused.
func TestNextSessionRefersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own, common := memory.New(memory.Config{}), &slowStore{Store: memory.New(memory.Config{})}
		message := []byte(replyWith(device("") + "\n" + device(` n="2"`)))
		session := func(service string) (r *unchanging.Referrer, key [32]byte) {
			lent := unchanging.OpenLent(t.Context(), own, service, "x:", clock.Real())
			return unchanging.NewReferrer(unchanging.ReferrerConfig{
				CommonStore: unchanging.CommonStore{Store: common, Headers: []soap.Name{fleet}}, Common: lent.Common(),
				Lent: lent, Lifetime: time.Hour,
			}), lent.Common().Key
		}
		refers := func(r *unchanging.Referrer, at int) []string {
			for i := range at {
				_, references := r.Refer(t.Context(), message)
				assert.Equal(t, i == at-1, len(references) == 1, i)
				if references != nil {
					return references
				}
			}
			return nil
		}
		first, key := session("http://a/x")
		before := refers(first, 2)
		first.Close()
		again, same := session("http://a/x")
		assert.Equal(t, key, same)
		assert.Equal(t, before, refers(again, 1))
		_, err := again.Keep(t.Context(), []string{device("") + "\n" + device(` n="2"`)})
		require.NoError(t, err)
		again.Close()
		assert.EqualValues(t, 1, common.puts.Load())
		other, another := session("http://a/y")
		assert.NotEqual(t, key, another, "another service does not get the key")
		other.Close()

		again, _ = session("http://a/x")
		again.Refused(refers(again, 1), false, errors.New("gone"))
		again.Close()
		time.Sleep(time.Minute)
		again, _ = session("http://a/x")
		refers(again, 1) // blocks are known to recur; it waits for the entry
		again.Close()
		assert.EqualValues(t, 3, common.puts.Load(), "there is one, which is found and lasts longer now")
		time.Sleep(46 * time.Minute)
		again, _ = session("http://a/x")
		refers(again, 1)
		again.Close()
		assert.EqualValues(t, 5, common.puts.Load(), "it would have ended soon")
		time.Sleep(8 * 24 * time.Hour)
		again, same = session("http://a/x")
		assert.NotEqual(t, key, same, "a key lives a week")
		again.Close()
	})
}

// What an end keeps of earlier sessions is only its own: what cannot be read counts as nothing.
func TestUnreadableLent(t *testing.T) {
	own := memory.New(memory.Config{})
	key := func() [32]byte {
		return unchanging.OpenLent(t.Context(), own, "http://a/", "x:", clock.Real()).Common().Key
	}
	for _, value := range []string{"", "{}", `{"key":"00"}`, `[1]`, `{"key":"` + strings.Repeat("zz", 32) + `"}`,
		`{"key":"` + strings.Repeat("00", 32) + `","until":"2999-01-01T00:00:00Z"}`} {
		sum := sha256.Sum256([]byte("http://a/\nx:"))
		uri := ctxstore.LentPrefix + hex.EncodeToString(sum[:16])
		_, err := own.Put(t.Context(), uri, []byte(value), ctxstore.PutOptions{})
		require.NoError(t, err)
		assert.NotEqual(t, key(), key(), value)
		assert.NotEqual(t, [32]byte{}, key(), value)
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
			_, references := e.Refer(t.Context(), []byte(m))
			assert.Empty(t, references, m)
		}
	}
	for i := range 100 { // named, but another one each time
		_, references := e.Refer(t.Context(), []byte(in(device(fmt.Sprintf(` n="%d"`, i)))))
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
		_, references := r.Refer(t.Context(), []byte(m))
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
			by, references := e.Refer(t.Context(), message)
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
	f.Add(strings.Repeat("A", 6) + taken.Field()[6:] + ",")
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
