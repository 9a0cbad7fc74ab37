package session_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/schema"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

const addressing = `<wsa:ReplyTo xmlns:wsa="http://www.w3.org/2005/08/addressing"><wsa:Address>urn:me</wsa:Address>` +
	`</wsa:ReplyTo>`

// papersSchema is one of the papers' two examples of HHFR Schema.
func papersSchema(t testing.TB, name string) *schema.Schema {
	text, err := os.ReadFile(filepath.Join("..", "..", "pkg", "schema", "testdata", name))
	require.NoError(t, err)
	s, err := schema.Parse(text)
	require.NoError(t, err)
	return s
}

const exampleSequence = "urn:hhfr:sequence:0f1e2d3c4b5a69788796a5b4c3d2e1f0"

func fullOffer(t testing.TB) *negotiate.Offer {
	o := exampleOffer()
	o.Assurances = []string{negotiate.AssuranceURI(wsrm.ExactlyOnce, true)}
	o.Securities = []string{negotiate.TransportSecurity}
	o.Sequence = exampleSequence
	o.Request = &negotiate.Description{Schema: papersSchema(t, "strings.xsd").String()}
	o.Reply = &negotiate.Description{Fingerprint: papersSchema(t, "floats.xsd").URI()}
	o.Headers = []string{addressing}
	return o
}

func fullAnswer(t testing.TB) *negotiate.Answer {
	a := exampleAnswer(t)
	a.Assurance = negotiate.AssuranceURI(wsrm.ExactlyOnce, true)
	a.Security, a.HeadersKept = negotiate.TransportSecurity, 1
	a.Sequence = exampleSequence
	a.Request = &negotiate.Description{Fingerprint: papersSchema(t, "strings.xsd").URI()}
	a.Refused = []negotiate.Declined{{Item: "ReplyDescription", Why: "not known here"}}
	a.Ignored = []soap.Name{{Space: "urn:example:later", Local: "Compression"}}
	return a
}

func TestFullMessagesRoundTrip(t *testing.T) {
	made, err := learn.FromMessage([]byte(envelope("<a>1</a>")))
	require.NoError(t, err)
	for _, v := range []soap.Version{soap.V11, soap.V12} {
		offer := fullOffer(t)
		for _, d := range []*negotiate.Description{offer.Reply, {Shape: made.Octets()},
			{Schema: "<element name=\"a&amp;\"\r\n"}} {
			offer.Reply = d
			data, err := offer.Message(v)
			require.NoError(t, err)
			read, _, err := negotiate.ParseOffer(data)
			require.NoError(t, err)
			assert.Equal(t, offer, read)
		}
		data, err := fullAnswer(t).Message(v)
		require.NoError(t, err)
		read, err := negotiate.ParseAnswer(data)
		require.NoError(t, err)
		assert.Equal(t, fullAnswer(t), read)
	}
}

// turned returns a message with the children of its offer or answer in the reverse order, and a
// foreign one before each.
func turned(t testing.TB, message []byte) (back []byte, foreign int) {
	e, err := soap.Parse(message, soap.Limits{})
	require.NoError(t, err)
	var children []soap.Element
	for i := len(e.Body[0].Children) - 1; i >= 0; i-- {
		children = append(children, soap.Element{Name: soap.Name{Space: "urn:foreign", Local: "Scheme"}, Text: "x"},
			e.Body[0].Children[i])
	}
	e.Body[0].Children = children
	back, err = soap.Build(e)
	require.NoError(t, err)
	return back, len(children) / 2
}

// The same children in any order, with foreign ones between them, mean the same.
func TestAnyOrder(t *testing.T) {
	data, err := fullAnswer(t).Message(soap.V12)
	require.NoError(t, err)
	data, foreign := turned(t, data)
	answer, err := negotiate.ParseAnswer(data)
	require.NoError(t, err)
	assert.Len(t, answer.Unknown, min(foreign, 16), "as many as a message may name")
	answer.Unknown = nil
	assert.Equal(t, fullAnswer(t), answer)

	data, err = fullOffer(t).Message(soap.V11)
	require.NoError(t, err)
	data, foreign = turned(t, data)
	read, _, err := negotiate.ParseOffer(data)
	require.NoError(t, err)
	assert.Len(t, read.Ignored, foreign)
	// Lists keep the order they have, so two values change places with the rest.
	want := fullOffer(t)
	want.Representations[0], want.Representations[1] = want.Representations[1], want.Representations[0]
	read.Ignored = nil
	assert.Equal(t, want, read)
}

func TestDescriptionsAreChecked(t *testing.T) {
	good, err := fullOffer(t).Message(soap.V11)
	require.NoError(t, err)
	for name, in := range map[string]string{
		"empty": strings.Replace(string(good),
			"<n:Fingerprint>"+papersSchema(t, "floats.xsd").URI()+"</n:Fingerprint>", "", 1),
		"two": strings.Replace(string(good), "<n:Fingerprint>", "<n:Shape>AAAA</n:Shape><n:Fingerprint>",
			1),
		"no shape": strings.Replace(string(good),
			"Fingerprint>"+papersSchema(t, "floats.xsd").URI()+"</n:Fingerprint>", "Shape></n:Shape>", 1),
		"not base64": strings.Replace(string(good),
			"Fingerprint>"+papersSchema(t, "floats.xsd").URI()+"</n:Fingerprint>", "Shape>A</n:Shape>", 1),
		"no fingerprint": strings.Replace(string(good), "urn:hhfr:schema:sha256:", "urn:hhfr:schema:md5:", 1),
		"two requests": strings.Replace(string(good), "<n:ReplyDescription>",
			"<n:RequestDescription><n:Schema>x</n:Schema></n:RequestDescription><n:ReplyDescription>", 1),
		"empty header": strings.Replace(string(good), "<n:RequestDescription>",
			"<n:UnchangingHeader/><n:RequestDescription>", 1),
		"header in pieces": strings.Replace(string(good), "<n:RequestDescription>",
			"<n:UnchangingHeader>x<a/></n:UnchangingHeader><n:RequestDescription>", 1),
		"many headers": strings.Replace(string(good), "<n:RequestDescription>",
			strings.Repeat("<n:UnchangingHeader>x</n:UnchangingHeader>", 16)+"<n:RequestDescription>", 1),
	} {
		require.NotEqual(t, string(good), in, name)
		_, _, err := negotiate.ParseOffer([]byte(in))
		assert.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Malformed}, name)
	}
	for name, o := range map[string]negotiate.Offer{
		"fingerprint":  {Request: &negotiate.Description{Fingerprint: "urn:x"}},
		"long schema":  {Request: &negotiate.Description{Schema: strings.Repeat("x", schema.MaxSchema+1)}},
		"header":       {Headers: []string{"x"}},
		"bare header":  {Headers: []string{"<a/>"}},
		"many headers": {Headers: make([]string, 17)},
	} {
		_, err := o.Message(soap.V11)
		assert.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Malformed}, name)
	}
}

// offered posts an offer and returns the answer.
func offered(t testing.TB, s *services, o *negotiate.Offer) *negotiate.Answer {
	data, err := o.Message(soap.V12)
	require.NoError(t, err)
	resp, err := s.http.Client().Post(s.http.URL+"/p", "application/soap+xml", bytes.NewReader(data))
	require.NoError(t, err)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, 200, resp.StatusCode, string(got))
	a, err := negotiate.ParseAnswer(got)
	require.NoError(t, err)
	return a
}

func TestResponderTakesWhatItUnderstands(t *testing.T) {
	two := papersSchema(t, "strings.xsd")
	made, err := learn.FromMessage([]byte(envelope("<a>1</a>")))
	require.NoError(t, err)
	var asked []string
	s := startServices(t, func(c *responder.Config) {
		c.Sequenced, c.Store = &teller{}, lasting{c.Store}
		c.UnchangingHeaders = func(path string, blocks []string) error {
			asked = append(asked, path+" "+blocks[0])
			return nil
		}
	})
	o := fullOffer(t)
	a := offered(t, s, o)
	assert.Equal(t, o.Assurances[0], a.Assurance)
	assert.Equal(t, exampleSequence, a.Sequence)
	assert.False(t, a.SequenceKnown)
	assert.Equal(t, negotiate.TransportSecurity, a.Security)
	assert.Equal(t, &negotiate.Description{Fingerprint: two.URI()}, a.Request)
	assert.Nil(t, a.Reply)
	assert.Equal(t, []negotiate.Declined{{Item: "ReplyDescription", Why: "not known here"}}, a.Refused)
	assert.Equal(t, 1, a.HeadersKept)
	assert.Equal(t, []string{"/p " + addressing}, asked)
	kept, err := s.store.Get(t.Context(), two.URI())
	require.NoError(t, err)
	assert.Equal(t, two.Compact(), kept.Value)
	entry, err := s.store.Get(t.Context(), a.Session.URI())
	require.NoError(t, err)
	facts, err := negotiate.ParseFacts(entry.Value)
	require.NoError(t, err)
	assert.Equal(t, []string{addressing}, facts.Headers)
	assert.Equal(t, exampleSequence, facts.Sequence)
	assert.Equal(t, two.URI(), facts.RequestDescription)
	assert.Equal(t, s.http.URL, facts.Origin)

	// Its fingerprint alone is enough now; a shape that was described is one that both have.
	o = exampleOffer()
	o.Request = &negotiate.Description{Fingerprint: two.URI()}
	o.Reply = &negotiate.Description{Shape: made.Octets()}
	a = offered(t, s, o)
	assert.Equal(t, o.Request, a.Request)
	assert.Equal(t, &negotiate.Description{Fingerprint: made.Fingerprint().URI()}, a.Reply)
	assert.Equal(t, [][32]byte{made.Fingerprint()}, a.Shapes)
	assert.Empty(t, a.Refused)
	_, err = ctxstore.Shapes{Store: s.store}.Get(t.Context(), made.Fingerprint())
	require.NoError(t, err)
	o.Reply = &negotiate.Description{Fingerprint: made.Fingerprint().URI()}
	assert.Equal(t, o.Reply, offered(t, s, o).Reply)

	o.Request = &negotiate.Description{Schema: "<element name='a' type='decimal'/>"}
	o.Reply = &negotiate.Description{Shape: []byte("no")}
	a = offered(t, s, o)
	require.Len(t, a.Refused, 2)
	assert.Equal(t, "RequestDescription", a.Refused[0].Item)
	assert.Contains(t, a.Refused[0].Why, "line 1, column 1")
	assert.Equal(t, "ReplyDescription", a.Refused[1].Item)

	plain := startServices(t, refuseHeaders)
	o = fullOffer(t)
	o.Assurances = []string{o.Assurances[0], negotiate.AtMostOnce}
	a = offered(t, plain, o)
	assert.Equal(t, negotiate.AtMostOnce, a.Assurance)
	assert.Empty(t, a.Sequence)
	assert.Zero(t, a.HeadersKept)
	assert.Equal(t, negotiate.Declined{Item: "UnchangingHeader", Why: "not here"}, a.Refused[0])
	o.Headers = nil
	assert.Zero(t, offered(t, plain, o).HeadersKept)
}

// refuseHeaders makes a responder agree to no unchanging headers.
func refuseHeaders(c *responder.Config) {
	c.UnchangingHeaders = func(string, []string) error { return errors.New("not here") }
}

func TestResponderDescribesItsReplies(t *testing.T) {
	two := papersSchema(t, "strings.xsd")
	s := startServices(t, func(c *responder.Config) {
		c.ReplySchema = func(path string) *schema.Schema {
			assert.Equal(t, "/p", path)
			return two
		}
	})
	assert.Equal(t, &negotiate.Description{Schema: two.String()}, offered(t, s, exampleOffer()).Reply)
	o := exampleOffer()
	o.Reply = &negotiate.Description{Schema: two.String()}
	assert.Equal(t, &negotiate.Description{Fingerprint: two.URI()}, offered(t, s, o).Reply)
}

// An offer that leaves nothing in common is refused explicitly, with the items.
func TestRefusedOnPurpose(t *testing.T) {
	s := startServices(t, func(c *responder.Config) { c.Representations = []string{"xml"} })
	cfg := config(t)
	cfg.Representations = []string{"binary"}
	sess := dial(t, s.http.URL, cfg)
	agreed := sess.Agreed()
	assert.False(t, agreed.HHFR)
	assert.Equal(t, []negotiate.Declined{{Item: "Representation", Why: "nothing in common"}}, agreed.Refused)
	assert.Contains(t, agreed.Why, "refused: Representation: nothing in common")
	require.NotNil(t, agreed.Offer)
	assert.Nil(t, agreed.Answer)

	o := exampleOffer()
	o.Schemes, o.Assurances = []string{"urn:x"}, []string{"urn:hhfr:assurance:exactly-once"}
	o.Securities = []string{"urn:hhfr:security:x"}
	data, err := o.Message(soap.V12)
	require.NoError(t, err)
	resp, err := s.http.Client().Post(s.http.URL, "application/soap+xml", bytes.NewReader(data))
	require.NoError(t, err)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	for _, item := range []string{"Scheme", "Assurance", "Security"} {
		assert.Contains(t, string(got), `<n:Refused item="`+item+`">nothing in common</n:Refused>`)
	}
	assert.NotContains(t, string(got), `item="Transport"`)
	cfg.RequireHHFR, cfg.RememberFor = true, -1
	_, err = session.Dial(t.Context(), s.http.URL, cfg)
	var e *negotiate.Error
	require.ErrorAs(t, err, &e)
	require.NotNil(t, e.Agreed)
	assert.Equal(t, agreed.Refused, e.Agreed.Refused)
}

func TestWhatWasAgreed(t *testing.T) {
	s := startServices(t, refuseHeaders)
	cfg := config(t)
	cfg.Headers = []string{addressing}
	cfg.SOAP = soap.V12
	agreed := dial(t, s.http.URL, cfg).Agreed()
	require.True(t, agreed.HHFR)
	require.NotNil(t, agreed.Offer)
	require.NotNil(t, agreed.Answer)
	assert.Zero(t, agreed.Answer.Token, "a token is for hello alone")
	assert.Equal(t, []string{addressing}, agreed.Offer.Headers)
	assert.Equal(t, "UnchangingHeader", agreed.Refused[0].Item)
	assert.Empty(t, agreed.Facts.Headers)
	assert.Equal(t, negotiate.AtMostOnce, agreed.Facts.Assurance)
}

// A server of 1.2 alone refuses an offer for its version, and gets another.
func TestVersionOfOffers(t *testing.T) {
	s := startServices(t, nil)
	only12 := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if soap.ParseContentType(r.Header.Get("Content-Type")).Version() != soap.V12 {
			data, err := soap.BuildFault(soap.V11, soap.Fault{Code: soap.VersionMismatch, Reason: "1.2 only"})
			assert.NoError(t, err)
			reply(500, "text/xml", string(data))(w, r)
			return
		}
		s.Handler(http.NotFoundHandler()).ServeHTTP(w, r)
	}))
	defer only12.Close()
	cfg := config(t)
	assert.True(t, dial(t, only12.URL, cfg).Agreed().HHFR)
	cfg.SOAP = soap.V11
	assert.False(t, dial(t, only12.URL, cfg).Agreed().HHFR)
}

func TestForeignElementsAreNamed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data := bytes.Replace(answerMessage(t, soap.V11), []byte("<n:Scheme>"),
			[]byte(`<x:More xmlns:x="urn:x">1</x:More><n:Later/><n:Scheme>`), 1)
		data = bytes.Replace(data, []byte(":9090"), []byte(deadPort(t)), 1)
		reply(200, "text/xml", string(data))(w, r)
	}))
	defer server.Close()
	agreed := dial(t, server.URL, config(t)).Agreed()
	_, answer := agreed.Ignored()
	assert.Equal(t, []soap.Name{{Space: "urn:x", Local: "More"}, {Space: negotiate.OfferName.Space, Local: "Later"}},
		answer)

	s := startServices(t, nil)
	data := bytes.Replace(offerMessage(t, soap.V11), []byte("<n:Scheme>"),
		[]byte(`<x:More xmlns:x="urn:x">1</x:More><n:Scheme>`), 1)
	resp, err := s.http.Client().Post(s.http.URL, "text/xml", bytes.NewReader(data))
	require.NoError(t, err)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	a, err := negotiate.ParseAnswer(got)
	require.NoError(t, err)
	assert.Equal(t, []soap.Name{{Space: "urn:x", Local: "More"}}, a.Ignored)
}

// Both HHFR Schema examples of the papers negotiate, and carry messages made of values, with the
// types of the schema.
func TestPapersSchemasNegotiateAndCarry(t *testing.T) {
	floats := make([]float32, 90)
	for i := range floats {
		floats[i] = float32(i) / 8
	}
	for name, values := range map[string]map[string]any{
		"strings.xsd": {"String1": "12", "String2": "34"},
		"floats.xsd":  {"MyArray": floats},
	} {
		t.Run(name, func(t *testing.T) {
			s := papersSchema(t, name)
			services := startServices(t, func(c *responder.Config) {
				c.Coders = nil // those of a book
			})
			cfg := config(t)
			book := binary.NewBook(ctxstore.Shapes{Store: cfg.Store})
			cfg.Coders = coders.OfBook(book)
			cfg.RequestSchema, cfg.ReplySchema = s, s
			sess := dial(t, services.http.URL, cfg)
			agreed := sess.Agreed()
			require.True(t, agreed.HHFR, agreed.Why)
			assert.Equal(t, s.URI(), agreed.Facts.RequestDescription)
			assert.Equal(t, s.URI(), agreed.Facts.ReplyDescription)
			assert.Empty(t, agreed.Refused)
			message, err := s.Message(values)
			require.NoError(t, err)
			for range 3 {
				_, got := call(t, sess, "", string(message))
				assert.Equal(t, string(message), got)
			}
			made, drift, err := s.Shape(message)
			require.NoError(t, err)
			assert.Empty(t, drift)
			for _, store := range []ctxstore.Store{cfg.Store, services.store} {
				_, err = ctxstore.Shapes{Store: store}.Get(t.Context(), made.Fingerprint())
				require.NoError(t, err, "the shape in use is the one that the schema types")
				kept, err := store.Get(t.Context(), s.URI())
				require.NoError(t, err, "the description is in the context")
				assert.Equal(t, s.Compact(), kept.Value)
			}
			stats := sess.Stream().Stats()
			assert.Less(t, stats.Sent.Data.Octets, int64(len(message)), "three messages are less than one")
			assert.Less(t, stats.Received.Data.Octets, int64(len(message)))
		})
	}
}

// What a service knows of the session it serves.
func TestFactsOfASession(t *testing.T) {
	got := make(chan *negotiate.Facts, 1)
	s := startServices(t, func(c *responder.Config) {
		c.Serve = func(ctx context.Context, _ string, x *streamer.Exchange) {
			got <- responder.FactsOf(ctx)
			_ = x.Reply(ctx, x.Message())
		}
	})
	cfg := config(t)
	cfg.Headers = []string{addressing}
	sess := dial(t, s.http.URL+"/a%20b", cfg)
	call(t, sess, "", "x")
	facts := <-got
	require.NotNil(t, facts)
	assert.Equal(t, []string{addressing}, facts.Headers)
	assert.Equal(t, "/a%20b", facts.Path)
	assert.Equal(t, []string{addressing}, sess.Agreed().Facts.Headers)
	assert.Nil(t, responder.FactsOf(t.Context()))
}

// A reply that the initiator described has the types of the description, also from a service that
// describes nothing; so has one that the service describes, which the initiator then has.
func TestRepliesAreTyped(t *testing.T) {
	digits := papersSchema(t, "strings.xsd") // two strings, that look like numbers
	reply, err := digits.Message(map[string]any{"String1": "12", "String2": "34"})
	require.NoError(t, err)
	typed, _, err := digits.Shape(reply)
	require.NoError(t, err)
	untyped, err := learn.FromMessage(reply)
	require.NoError(t, err)
	require.NotEqual(t, typed.Fingerprint(), untyped.Fingerprint())
	for _, by := range []string{"nobody", "initiator", "responder"} {
		t.Run(by, func(t *testing.T) {
			services := startServices(t, func(c *responder.Config) {
				c.Coders = nil
				c.Serve = func(ctx context.Context, _ string, x *streamer.Exchange) {
					_, _ = x.Message().ReadAll(100)
					_ = x.Reply(ctx, streamer.NewMessage(nil, reply))
				}
				if by == "responder" {
					c.ReplySchema = func(string) *schema.Schema { return digits }
				}
			})
			cfg := config(t)
			cfg.Coders = nil
			if by == "initiator" {
				cfg.ReplySchema = digits
			}
			sess := dial(t, services.http.URL, cfg)
			_, got := call(t, sess, "", "question")
			assert.Equal(t, string(reply), got)
			_, err := ctxstore.Shapes{Store: services.store}.Get(t.Context(), typed.Fingerprint())
			_, kept := cfg.Store.Get(t.Context(), digits.URI())
			if by == "nobody" {
				require.Error(t, err)
				require.Error(t, kept)
				return
			}
			require.NoError(t, err)
			require.NoError(t, kept)
			assert.Equal(t, digits.URI(), sess.Agreed().Facts.ReplyDescription)
		})
	}
}
