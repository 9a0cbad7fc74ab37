package unchanging_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// replyWith is a reply with header blocks.
func replyWith(blocks string) string {
	return `<s:Envelope xmlns:s="` + xmlns.SOAP11 + `"><s:Header>` + blocks +
		`</s:Header><s:Body><r/></s:Body></s:Envelope>`
}

// atOnce runs what a restorer reads, before anything else.
func atOnce(read func(context.Context)) bool {
	read(context.Background())
	return true
}

func never(func(context.Context)) bool { return false }

// exchange has a responder answer with a reply, which the initiator gets as it was, and returns
// what travels.
func (e *ends) exchange(t testing.TB, reply string) (travels string, references int) {
	t.Helper()
	taken := e.Take()
	travels = reply
	if taken != nil {
		if made := e.Reply(taken.Field(), atOnce); made != nil {
			by, n := made.Refer([]byte(reply))
			if references = n; n > 0 {
				travels = string(by)
			}
		}
	}
	whole, n, err := e.RestoreReply(taken, []byte(travels))
	require.NoError(t, err)
	require.Equal(t, references, n)
	if n == 0 {
		whole = []byte(travels)
	}
	require.Equal(t, reply, string(whole))
	e.Settle()
	return travels, references
}

// A block that recurs in replies is referred to once it is in the store and a request has named it;
// what the initiator gets is the same all the time.
func TestReplies(t *testing.T) {
	fixed, changes := device(""), `<f:Now xmlns:f="urn:example:fleet">%d</f:Now>`
	for name, reply := range map[string]string{
		"one":          replyWith(fixed),
		"among others": replyWith("<a/>" + strings.Replace(changes, "%d", "7", 1) + fixed + "\r\n<!-- & --><b/>"),
		"neighbors":    replyWith(fixed + "\n " + device(` n="2"`) + "<a/>"),
		"twice":        replyWith(fixed + "<a/>" + fixed),
		"no prefix":    `<Envelope xmlns="` + xmlns.SOAP12 + `"><Header>` + fixed + `</Header><Body/></Envelope>`,
		"no body":      `<s:Envelope xmlns:s="` + xmlns.SOAP11 + `"><s:Header>` + fixed + `</s:Header>`,
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnds(t, fleet)
			for range 4 {
				e.exchange(t, reply)
			}
			travels, references := e.exchange(t, reply)
			assert.Positive(t, references)
			assert.Less(t, len(travels), len(reply)-300)
			assert.Contains(t, travels, `:mustUnderstand="1"`)
			assert.NotContains(t, travels, "0123456789012345678901")
			assert.NotNil(t, e.Take())
		})
	}
}

// What may not travel as a reference in a request does not in a reply either, and is in no store.
func TestWhatStaysInReplies(t *testing.T) {
	e := newEnds(t, fleet)
	own := `<c:context xmlns:c="` + xmlns.WSContext + `"><c:context-identifier>` + ctxstore.FragmentPrefix +
		strings.Repeat("0", 32) + ":" + strings.Repeat("0", 16) + "#" + strings.Repeat("0", 16) +
		`</c:context-identifier></c:context>`
	for _, reply := range []string{
		replyWith(device(` s:actor="http://schemas.xmlsoap.org/soap/actor/next"`)),
		replyWith(device(` xmlns:u="` + xmlns.WSU + `" u:Id="signed"`)),
		replyWith(strings.ReplaceAll(device(""), "Device", "Other")),
		replyWith(`<f:Device xmlns:f="urn:example:fleet">short</f:Device>`),
		replyWith(device("") + own), replyWith("") + device(""), "", "no XML", "<",
		`<!DOCTYPE s>` + replyWith(device("")),
	} {
		for range 5 {
			_, references := e.exchange(t, reply)
			assert.Zero(t, references, reply)
		}
	}
	assert.Nil(t, e.Take())
	e.Close()
	for info := range e.store.List(t.Context(), "") {
		t.Errorf("%s is in the store", info.URI)
	}
}

// A responder refers only to what a request has named that was made with the key of the session,
// and to nothing that stands in parts of other blocks.
func TestRepliesThatAreNotAskedFor(t *testing.T) {
	e, reply := newEnds(t, fleet), replyWith(device(""))
	for range 4 {
		e.exchange(t, reply)
	}
	field := e.Take().Field()
	for name, other := range map[string]string{
		"empty": "", "no list": ";;", "cut": field[:len(field)-1], "no proof": field[:len(field)-11],
		"forged": field[:len(field)-10] + "0123456789", "another session": strings.Repeat("0", 6) + field[6:],
		"another name": field[:8] + "0123456789" + field[18:],
		"whole":        ctxstore.FragmentPrefix + field, "upper case": strings.ToUpper(field),
	} {
		if made := e.Reply(other, atOnce); made != nil {
			_, references := made.Refer([]byte(reply))
			assert.Zero(t, references, name)
		}
	}
	made := e.Reply(strings.Repeat("x, ", 10000)+field+", "+field, never)
	require.NotNil(t, made)
	_, references := made.Refer([]byte(reply))
	assert.Equal(t, 1, references)
	for name, other := range map[string]string{
		"inside another": replyWith("<a>" + device("") + "</a>"),
		"in the body":    replyWith("<a/>") + device(""),
		"goes on":        replyWith(strings.TrimSuffix(device(""), ">") + " >"),
		"changed":        replyWith(strings.Replace(device(""), "9", "8", 1)),
	} {
		_, references := made.Refer([]byte(other))
		assert.Zero(t, references, name)
	}
}

// A reply with a reference that its request has not named is an error, and no message; references
// of other sessions stay.
func TestRepliesThatRefuseToBeWhole(t *testing.T) {
	e, other, reply := newEnds(t, fleet), newEnds(t, fleet), replyWith(device(""))
	for range 4 {
		e.exchange(t, reply)
		other.exchange(t, reply)
	}
	taken := e.Take()
	by, references := e.Reply(taken.Field(), never).Refer([]byte(reply))
	require.Equal(t, 1, references)
	_, _, err := e.RestoreReply(nil, by)
	assert.ErrorContains(t, err, "which its request has not named")
	_, n, err := other.RestoreReply(other.Take(), by)
	require.NoError(t, err)
	assert.Zero(t, n, "who gets it takes it for what it is")
	whole, n, err := e.RestoreReply(taken, by)
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	assert.Equal(t, reply, string(whole))
}

// Requests do not go on to name what replies do not have any more, nor what a responder never
// refers to: it may be an old one.
func TestRequestsNameWhatIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, reply := newEnds(t, fleet), replyWith(device(""))
		for range 4 {
			e.exchange(t, reply)
		}
		require.NotNil(t, e.Take())
		for range 20 {
			e.exchange(t, replyWith("<a/>"))
		}
		assert.Nil(t, e.Take())
		e.exchange(t, reply)
		require.NotNil(t, e.Take(), "it is there again")

		unreferred := func() {
			_, n, err := e.RestoreReply(e.Take(), []byte(reply))
			require.NoError(t, err)
			assert.Zero(t, n)
		}
		for range 100 {
			unreferred()
		}
		assert.NotNil(t, e.Take(), "the responder may be reading it")
		time.Sleep(time.Minute)
		unreferred()
		assert.Nil(t, e.Take())
		time.Sleep(time.Minute)
		assert.NotNil(t, e.Take(), "the responder may have a store again")

		e.Refused(nil, true, assert.AnError)
		assert.Nil(t, e.Take(), "the peer understands none")
	})
}

// A request names few blocks, however many recur.
func TestFewAreNamed(t *testing.T) {
	e := newEnds(t, fleet)
	var blocks []string
	for i := range 10 {
		blocks = append(blocks, device(` n="`+strings.Repeat("1", i)+`"`))
	}
	for range 3 {
		for _, b := range blocks {
			e.exchange(t, replyWith(b))
		}
	}
	field := e.Take().Field()
	assert.Equal(t, 3, strings.Count(field, ","))
	assert.Less(t, len(field), 300)
	for range 3 {
		e.exchange(t, replyWith(strings.Join(blocks, "<a/>")))
	}
}

// What a reply refers to is read beside it, once at a time, and not while the store fails.
func TestRepliesWaitForNoStore(t *testing.T) {
	e, reply := newEnds(t, fleet), replyWith(device(""))
	for range 4 {
		e.exchange(t, reply)
	}
	field := e.Take().Field()
	asked, common := 0, negotiate.NewCommon("x:")
	fails := unchanging.NewRestorer(unchanging.RestorerConfig{
		Store: e.store,
		Common: func(context.Context, string) (*negotiate.Common, error) {
			asked++
			return common, &ctxstore.Error{Code: ctxstore.Unavailable}
		},
	})
	var reads []func(context.Context)
	later := func(read func(context.Context)) bool {
		reads = append(reads, read)
		return true
	}
	for range 5 {
		_, references := fails.Reply(field, later).Refer([]byte(reply))
		assert.Zero(t, references)
	}
	require.Len(t, reads, 1)
	reads[0](t.Context())
	for range 5 {
		fails.Reply(field, atOnce)
	}
	assert.Equal(t, 1, asked)
}
