package login_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/login"
	"github.com/hhfr/hhfr/internal/xmltext/pull"
)

func TestStamp(t *testing.T) {
	const (
		begin = `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" ` +
			`xmlns:o="http://docs.oasis-open.org/wss/2004/01/` +
			`oasis-200401-wss-wssecurity-secext-1.0.xsd"><s:Header><o:Security s:mustUnderstand="1">`
		end = `</o:Security></s:Header><s:Body><o:UsernameToken>not this one</o:UsernameToken></s:Body></s:Envelope>`
	)
	l := &login.Login{User: "al&ice", WSS: "digest"}
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	old := begin + `<Timestamp><Created>old</Created></Timestamp><other>kept</other>` +
		`<o:UsernameToken><o:Username>bob</o:Username><o:Password>old</o:Password></o:UsernameToken>` + end
	got := string(l.Stamp([]byte(old), "secret", now))
	assert.True(t, strings.HasPrefix(got, begin+"<wsu:Timestamp xmlns:wsse="))
	assert.True(t, strings.HasSuffix(got, `</wsse:UsernameToken>`+end))
	assert.Contains(t, got, "<other>kept</other>")
	assert.Contains(t, got, "<wsu:Created>2026-11-28T12:00:00.000Z</wsu:Created>")
	assert.Contains(t, got, "<wsse:Username>al&amp;ice</wsse:Username>")
	assert.NotContains(t, got, "old")
	assert.NotContains(t, got, "secret")
	var p pull.Parser
	p.Reset([]byte(got))
	for err := error(nil); err == nil; {
		if _, err = p.Next(); err != nil {
			assert.EqualError(t, err, "EOF")
		}
	}

	for _, same := range []string{
		begin + end,
		begin + `<ds:Signature xmlns:ds="urn:x"/><o:UsernameToken/>` + end,
		begin + `<ds:Signature xmlns:ds="urn:x">1</ds:Signature><o:UsernameToken>2</o:UsernameToken>` + end,
		strings.ReplaceAll(begin, "oasis-200401", "other") + `<o:UsernameToken>2</o:UsernameToken>` + end,
		"</no><xml", "",
	} {
		assert.Equal(t, same, string(l.Stamp([]byte(same), "secret", now)))
	}
}
