// Package login is who a command calls as: by HTTP, or by WS-Security in the message.
package login

import (
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // what WS-Security's digest is made of
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/flags"
)

// Login is who calls.
type Login struct {
	// User logs in by HTTP Basic; with Digest by HTTP Digest; with WSS, text or digest, in the
	// message.
	User, WSS string
	Digest    bool
	// TokenFile has a bearer token; empty: there is none.
	TokenFile string

	passwordFile string
}

// passwordVariable is the environment variable with a password.
const passwordVariable = "HHFR_PASSWORD"

// Flags declares the flags.
func (o *Login) Flags(f *pflag.FlagSet) {
	f.StringVar(&o.User, "user", "", "name to log in with, by HTTP Basic; needs --password-file or "+passwordVariable)
	f.StringVar(&o.passwordFile, "password-file", "", "file whose first line is the password of --user")
	f.StringVar(&o.TokenFile, "token-file", "", "file whose first line is sent as a bearer token")
	f.StringVar(&o.WSS, "wss", "", "log in by a UsernameToken of WS-Security with a timestamp: text or digest")
}

// CallFlags declares them with those of calls: HTTP fields, and a login that needs an answer of the
// server first.
func (o *Login) CallFlags(f *pflag.FlagSet, fields *[]string) {
	flags.Fields(f, fields)
	o.Flags(f)
	f.BoolVar(&o.Digest, "digest", false, "--user logs in by HTTP Digest in place of Basic")
}

// Password reads that of the user; empty without one. It is one that XML and HTTP can have.
func (o *Login) Password() (string, error) {
	password, err := o.secret()
	if err == nil && (!printable(o.User) || !printable(password)) {
		return "", exit.Withf(exit.Malformed, "", "--user or its password has control characters, or is not in UTF-8")
	}
	return password, err
}

func printable(text string) bool {
	return utf8.ValidString(text) && strings.IndexFunc(text, unicode.IsControl) < 0
}

func (o *Login) secret() (string, error) {
	switch {
	case o.User == "" && (o.passwordFile != "" || o.WSS != "" || o.Digest):
		return "", exit.Usagef("", "--password-file, --wss and --digest go with --user")
	case o.WSS != "" && o.Digest:
		return "", exit.Usagef("", "--wss and --digest both say how to log in")
	case o.WSS != "" && o.WSS != "text" && o.WSS != "digest":
		return "", exit.Usagef("", "--wss is text or digest, not %s", o.WSS)
	case o.User == "":
		return "", nil
	case o.passwordFile == "":
		password, ok := os.LookupEnv(passwordVariable)
		if !ok {
			return "", exit.Usagef("--password-file FILE, or "+passwordVariable, "--user without a password")
		}
		return password, nil
	}
	return firstLine("--password-file", o.passwordFile)
}

func firstLine(flag, file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("%s: %w", flag, err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSuffix(line, "\r"), nil
}

// Header is the HTTP fields of a call: these, each as Name: value, and the login's.
func (o *Login) Header(fields []string, password string) (http.Header, error) {
	list, err := flags.ParseFields(fields)
	if err != nil {
		return nil, err
	}
	authorization, err := o.Authorization(password)
	if err != nil {
		return nil, err
	}
	header := http.Header{}
	if authorization != "" {
		header.Set("Authorization", authorization)
	}
	for _, f := range list {
		header.Add(f.Name, f.Value)
	}
	return header, nil
}

// Authorization is the HTTP field of a login; empty: there is none.
func (o *Login) Authorization(password string) (string, error) {
	basic := o.User != "" && o.WSS == ""
	switch {
	case basic && o.TokenFile != "":
		return "", exit.Usagef("", "--token-file and --user without --wss both say who calls")
	case basic && !o.Digest:
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(o.User+":"+password)), nil
	case o.TokenFile == "":
		return "", nil
	}
	token, err := firstLine("--token-file", o.TokenFile)
	if err == nil && (token == "" || !printable(token)) {
		err = exit.Withf(exit.Malformed, "", "--token-file: %s does not begin with a line of text", o.TokenFile)
	}
	return "Bearer " + token, err
}

// The namespaces and types of WS-Security 1.0 (OASIS, March 2004; UsernameToken Profile 1.0).
const (
	wsseSpace  = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd"
	wsuSpace   = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd"
	tokenTypes = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-username-token-profile-1.0#"
	base64Type = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-soap-message-security-1.0#Base64Binary"
)

const (
	// tokenLife is how long a timestamp is good for.
	tokenLife = 5 * time.Minute
	// tokenTime is the form of its times.
	tokenTime = "2006-01-02T15:04:05.000Z"
)

// Security is the header block of a login by WS-Security, new for each call; empty without one.
func (o *Login) Security(password string, now time.Time) string {
	if o.WSS == "" {
		return ""
	}
	return fmt.Sprintf(`<wsse:Security xmlns:wsse="%s" xmlns:wsu="%s">%s%s</wsse:Security>`, wsseSpace, wsuSpace,
		timestamp("", now), o.token("", password, now))
}

// timestamp is the element of that name; declarations are its attributes.
func timestamp(declarations string, now time.Time) string {
	return fmt.Sprintf(`<wsu:Timestamp%s><wsu:Created>%s</wsu:Created><wsu:Expires>%s</wsu:Expires></wsu:Timestamp>`,
		declarations, now.UTC().Format(tokenTime), now.UTC().Add(tokenLife).Format(tokenTime))
}

// token is a UsernameToken, with these attributes.
func (o *Login) token(declarations, password string, now time.Time) string {
	secret, kind, more := password, "PasswordText", ""
	if o.WSS == "digest" {
		nonce, created := make([]byte, 16), now.UTC().Format(tokenTime)
		_, _ = rand.Read(nonce)                                     // it never fails
		sum := sha1.Sum([]byte(string(nonce) + created + password)) //nolint:gosec // as above
		secret, kind = base64.StdEncoding.EncodeToString(sum[:]), "PasswordDigest"
		more = fmt.Sprintf(`<wsse:Nonce EncodingType="%s">%s</wsse:Nonce><wsu:Created>%s</wsu:Created>`, base64Type,
			base64.StdEncoding.EncodeToString(nonce), created)
	}
	return fmt.Sprintf(`<wsse:UsernameToken%s><wsse:Username>%s</wsse:Username>`+
		`<wsse:Password Type="%s%s">%s</wsse:Password>%s</wsse:UsernameToken>`,
		declarations, escaped(o.User), tokenTypes, kind, escaped(secret), more)
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text))
	return b.String()
}
