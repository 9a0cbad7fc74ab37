package session_test

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
)

var exampleBlock = regexp.MustCompile("(?s)<!-- example: ([a-z ]+) -->\n```[a-z]+\n(.*?)```")

// The examples of docs/negotiation.md are what is written, except for white space between tags.
func TestDocumentedExamples(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "negotiation.md"))
	require.NoError(t, err)
	examples := map[string]string{}
	for _, m := range exampleBlock.FindAllStringSubmatch(string(page), -1) {
		examples[m[1]] = m[2]
	}
	answer := exampleAnswer(t)
	facts := negotiate.Facts{
		Session:        answer.Session,
		Scheme:         answer.Scheme,
		Representation: answer.Representation,
		Transport:      answer.Transport,
		Path:           "/echo",
		Address:        answer.Address,
		Expires:        time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	document, err := session.ContextDocument(facts, answer.Token)
	require.NoError(t, err)
	fullOffer, err := fullOffer(t).Message(soap.V12)
	require.NoError(t, err)
	fullAnswer, err := fullAnswer(t).Message(soap.V12)
	require.NoError(t, err)
	const reference = "urn:hhfr:fragment:00112233445566778899aabbccddeeff:0123456789abcdef#fedcba9876543210"
	fragments, err := negotiate.FragmentsMessage([]string{reference})
	require.NoError(t, err)
	named, err := negotiate.ParseFragments(fragments)
	require.NoError(t, err)
	assert.Equal(t, []string{reference}, named)
	plain, err := soap.BuildFault(soap.V11, soap.Fault{Code: soap.Client, Reason: "no such operation"})
	require.NoError(t, err)
	s := startServices(t, nil)
	owl := strings.Replace(string(offerMessage(t, soap.V11)), "transport:tcp", "transport:owl", 1)
	strange := strings.Replace(string(offerMessage(t, soap.V12)), "<soap:Body>",
		`<soap:Header><q:Block xmlns:q="urn:example:h" soap:mustUnderstand="true"/></soap:Header><soap:Body>`, 1)
	for name, want := range map[string]string{
		"full offer": string(fullOffer), "full answer": string(fullAnswer), "plain fault": string(plain),
		"refusal":                     answered(t, s, "text/xml", owl),
		"header block not understood": answered(t, s, "application/soap+xml", strange),
		"offer":                       string(offerMessage(t, soap.V11)), "answer": string(answerMessage(t, soap.V11)),
		"context": string(document), "fragments": string(fragments),
	} {
		between := regexp.MustCompile(`>\s+<`)
		assert.Equal(t, want, strings.TrimSpace(between.ReplaceAllString(examples[name], "><")), name)
	}
	lines := func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }
	assert.Equal(t, string(negotiate.DefaultRequestHead("PATH")), lines(examples["request head"]))
	assert.Equal(t, string(negotiate.DefaultReplyHead()), lines(examples["reply head"]))

	travels := unchanging.TakeOut([]string{addressing}, []byte(examples["message with a header"]))
	require.NotEmpty(t, travels)
	assert.Equal(t, examples["what travels of it"], string(travels))

	// As they stand on the page they mean the same.
	offer, _, err := negotiate.ParseOffer([]byte(examples["offer"]))
	require.NoError(t, err)
	assert.Equal(t, exampleOffer(), offer)
	read, err := negotiate.ParseAnswer([]byte(examples["answer"]))
	require.NoError(t, err)
	assert.Equal(t, answer, read)
	kept, err := negotiate.ParseFacts([]byte(examples["context"]))
	require.NoError(t, err)
	assert.Equal(t, facts, kept)
}

// answered posts a message and returns the answer.
func answered(t testing.TB, s *services, contentType, message string) string {
	resp, err := s.http.Client().Post(s.http.URL, contentType, strings.NewReader(message))
	require.NoError(t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(data)
}

var (
	declared = regexp.MustCompile(`<xs:element name="([A-Za-z]+)"`)
	listed   = regexp.MustCompile("(?m)^\\| ((?:`[A-Z][A-Za-z]+`(?:, )?)+) \\|")
	word     = regexp.MustCompile("`([A-Za-z]+)`")
)

// Every element that docs/negotiation.xsd declares is described in docs/negotiation.md, and every
// one in its tables of offers, answers and descriptions is declared.
func TestSchemaAndPageNameTheSame(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		require.NoError(t, err)
		return string(text)
	}
	xsd, page := read("negotiation.xsd"), read("negotiation.md")
	elements := map[string]bool{}
	for _, m := range declared.FindAllStringSubmatch(xsd, -1) {
		elements[m[1]] = true
		assert.Contains(t, page, "`"+m[1]+"`", m[1])
	}
	tables, _, found := strings.Cut(page, "## 5. The session's context")
	require.True(t, found)
	told := 0
	for _, row := range listed.FindAllStringSubmatch(tables, -1) {
		for _, m := range word.FindAllStringSubmatch(row[1], -1) {
			told++
			assert.True(t, elements[m[1]], "%s is not in negotiation.xsd", m[1])
		}
	}
	assert.Greater(t, told, 25)
	assert.Regexp(t, `<xs:choice minOccurs="0" maxOccurs="unbounded">`, xsd)
	assert.Contains(t, xsd, `<xs:any namespace="##other"`)
}
