package negotiate_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
)

func exampleShapes() [][32]byte {
	var counting, ones [32]byte
	for i := range counting {
		counting[i], ones[i] = byte(i), 0xFF
	}
	return [][32]byte{counting, ones}
}

func exampleOffer() *negotiate.Offer {
	return &negotiate.Offer{
		Schemes:         []string{negotiate.Scheme},
		Representations: []string{negotiate.RepresentationURI("binary"), negotiate.RepresentationURI("xml")},
		Transports:      []string{negotiate.TransportURI("tcp")},
		Lifetime:        time.Hour,
		RequestHead:     negotiate.DefaultRequestFields,
		ReplyHead:       negotiate.DefaultReplyFields,
		Shapes:          exampleShapes(),
	}
}

func exampleAnswer(t testing.TB) *negotiate.Answer {
	id, err := negotiate.ParseSessionID("urn:uuid:6f1c3c62-9d0f-4c5e-8a55-0f2d6f0e7b41")
	require.NoError(t, err)
	a := &negotiate.Answer{
		Scheme:         negotiate.Scheme,
		Representation: negotiate.RepresentationURI("binary"),
		Transport:      negotiate.TransportURI("tcp"),
		Address:        ":9090",
		Session:        id,
		Lifetime:       time.Hour,
		RequestHead:    negotiate.DefaultRequestFields,
		ReplyHead:      negotiate.DefaultReplyFields,
		Shapes:         exampleShapes()[:1],
	}
	token, err := hex.DecodeString("00112233445566778899aabbccddeeff")
	require.NoError(t, err)
	copy(a.Token[:], token)
	return a
}

func offerMessage(t testing.TB, v soap.Version) []byte {
	data, err := exampleOffer().Message(v)
	require.NoError(t, err)
	return data
}

func answerMessage(t testing.TB, v soap.Version) []byte {
	data, err := exampleAnswer(t).Message(v)
	require.NoError(t, err)
	return data
}

func TestMessagesRoundTrip(t *testing.T) {
	for _, v := range []soap.Version{soap.V11, soap.V12} {
		offer, version, err := negotiate.ParseOffer(offerMessage(t, v))
		require.NoError(t, err)
		assert.Equal(t, v, version)
		assert.Equal(t, exampleOffer(), offer)
		answer, err := negotiate.ParseAnswer(answerMessage(t, v))
		require.NoError(t, err)
		assert.Equal(t, exampleAnswer(t), answer)
	}
}

func TestOfferLimits(t *testing.T) {
	o := exampleOffer()
	o.Shapes = make([][32]byte, negotiate.MaxShapes)
	data, err := o.Message(soap.V11)
	require.NoError(t, err)
	assert.Less(t, len(data), negotiate.MaxOffer)
	back, _, err := negotiate.ParseOffer(data)
	require.NoError(t, err)
	assert.Len(t, back.Shapes, negotiate.MaxShapes)

	o.Shapes = make([][32]byte, negotiate.MaxShapes+1)
	_, err = o.Message(soap.V11)
	require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Malformed})
}

func TestParseRefuses(t *testing.T) {
	offer, answer := string(offerMessage(t, soap.V11)), string(answerMessage(t, soap.V11))
	edit := func(s, old, new string) string {
		require.Contains(t, s, old)
		return strings.Replace(s, old, new, 1)
	}
	fault, err := soap.BuildFault(soap.V11, soap.Fault{Code: soap.Client, Reason: "no"})
	require.NoError(t, err)
	many := "<n:Transport>urn:x</n:Transport>"
	for name, in := range map[string]string{
		"empty": "", "html": "<html/>", "fault": string(fault), "answer for offer": answer, "cut": offer[:len(offer)/2],
		"no scheme":       edit(offer, "<n:Scheme>urn:hhfr:scheme:1</n:Scheme>", ""),
		"many transports": edit(offer, many[:13], strings.Repeat(many, 17)+many[:13]),
		"bad lifetime":    edit(offer, ">3600<", ">-1<"), "long lifetime": edit(offer, ">3600<", ">99999999999<"),
		"bad fingerprint": edit(offer, "AAECAwQ", "AAECAw!"), "short fingerprint": edit(offer, "AAECAwQ", "AAECAw"),
		"fingerprint not canonical": edit(offer, "Hh8 ", "Hh9 "),
		"too many fingerprints": edit(offer, "AAECAwQ",
			strings.Repeat(strings.Repeat("A", 43)+" ", 1024)+"AAECAwQ"),
		"dtd":               edit(offer, "<soap:Envelope", "<!DOCTYPE x><soap:Envelope"),
		"child in a value":  edit(offer, "<n:Lifetime>", "<n:Lifetime><n:x/>"),
		"control character": edit(offer, "urn:hhfr:scheme:1", "urn:hhfr:sch&#10;eme:1"),
		"two children":      edit(offer, "</soap:Body>", "<a/></soap:Body>"),
		"must understand": edit(offer, "<soap:Body>",
			`<soap:Header><a soap:mustUnderstand="1"/></soap:Header><soap:Body>`),
		"too long": offer + strings.Repeat(" ", negotiate.MaxOffer),
	} {
		_, _, err := negotiate.ParseOffer([]byte(in))
		assert.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Malformed}, name)
	}
	for name, in := range map[string]string{
		"empty": "", "fault": string(fault), "offer for answer": offer,
		"no token": edit(answer, "<n:Token>", "<n:Tok>X</n:Tok><!--") + "-->", "short token": edit(answer, "0011", ""),
		"token no hex":    edit(answer, "0011", "00xx"),
		"session no uuid": edit(answer, "urn:uuid:6f1c", "urn:uuid:6f1"),
		"no lifetime":     edit(answer, "<n:Lifetime>3600</n:Lifetime>", ""),
		"two addresses":   edit(answer, "<n:Address>", "<n:Address>:1</n:Address><n:Address>"),
		"empty address":   edit(answer, ":9090", ""),
	} {
		_, err := negotiate.ParseAnswer([]byte(in))
		assert.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Malformed}, name)
	}
}

// Elements that a later version may add do not disturb this one.
func TestUnknownElementsAreIgnored(t *testing.T) {
	in := bytes.Replace(offerMessage(t, soap.V11), []byte("<n:Scheme>"),
		[]byte(`<n:New x="y"><n:Scheme>z</n:Scheme></n:New><Scheme xmlns="urn:other">q</Scheme><n:Scheme>`), 1)
	in = bytes.Replace(in, []byte("<soap:Body>"),
		[]byte(`<soap:Header><h xmlns="urn:h">1</h></soap:Header><soap:Body>`), 1)
	offer, _, err := negotiate.ParseOffer(in)
	require.NoError(t, err)
	assert.Equal(t, []soap.Name{{Space: xmlns.HHFRNegotiation, Local: "New"}, {Space: "urn:other", Local: "Scheme"}},
		offer.Ignored)
	offer.Ignored = nil
	assert.Equal(t, exampleOffer(), offer)
}

// What parses can be written, and parses to the same.
func FuzzNegotiation(f *testing.F) {
	for _, v := range []soap.Version{soap.V11, soap.V12} {
		f.Add(offerMessage(f, v))
		f.Add(answerMessage(f, v))
	}
	f.Add([]byte(`<Envelope xmlns="` + xmlns.SOAP11 + `"><Body><Offer xmlns="` + xmlns.HHFRNegotiation +
		`"/></Body></Envelope>`))
	f.Fuzz(func(t *testing.T, in []byte) {
		if offer, v, err := negotiate.ParseOffer(in); err == nil {
			data, err := offer.Message(v)
			if err != nil && len(in) > negotiate.MaxOffer/8 {
				return // longer because of escapes
			}
			require.NoError(t, err)
			again, _, err := negotiate.ParseOffer(data)
			require.NoError(t, err, "%q", data)
			offer.Ignored = nil // read, not written
			require.Equal(t, offer, again)
		}
		if answer, err := negotiate.ParseAnswer(in); err == nil {
			data, err := answer.Message(soap.V11)
			require.NoError(t, err)
			again, err := negotiate.ParseAnswer(data)
			require.NoError(t, err, "%q", data)
			answer.Unknown = nil
			require.Equal(t, answer, again)
		}
	})
}
