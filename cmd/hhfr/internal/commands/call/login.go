package call

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

// login is who calls.
type login struct {
	user, passwordFile, wss, tokenFile string
	digest                             bool
}

// passwordVariable is the environment variable with a password.
const passwordVariable = "HHFR_PASSWORD"

func (o *login) flags(f *pflag.FlagSet) {
	f.StringVar(&o.user, "user", "", "name to log in with, by HTTP Basic; needs --password-file or "+passwordVariable)
	f.StringVar(&o.passwordFile, "password-file", "", "file whose first line is the password of --user")
	f.StringVar(&o.tokenFile, "token-file", "", "file whose first line is sent as a bearer token")
	f.BoolVar(&o.digest, "digest", false, "--user logs in by HTTP Digest in place of Basic")
	f.StringVar(&o.wss, "wss", "", "log in by a UsernameToken of WS-Security with a timestamp: text or digest")
}

// password reads it. It is one that XML and HTTP can have.
func (o *login) password() (string, error) {
	password, err := o.secret()
	if err == nil && (!printable(o.user) || !printable(password)) {
		return "", exit.Withf(exit.Malformed, "", "--user or its password has control characters, or is not in UTF-8")
	}
	return password, err
}

func printable(text string) bool {
	return utf8.ValidString(text) && strings.IndexFunc(text, unicode.IsControl) < 0
}

func (o *login) secret() (string, error) {
	switch {
	case o.user == "" && (o.passwordFile != "" || o.wss != "" || o.digest):
		return "", exit.Usagef("", "--password-file, --wss and --digest go with --user")
	case o.wss != "" && o.digest:
		return "", exit.Usagef("", "--wss and --digest both say how to log in")
	case o.wss != "" && o.wss != "text" && o.wss != "digest":
		return "", exit.Usagef("", "--wss is text or digest, not %s", o.wss)
	case o.user == "":
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

// authorization is the HTTP field of a login; empty: there is none.
func (o *login) authorization(password string) (string, error) {
	basic := o.user != "" && o.wss == ""
	switch {
	case basic && o.tokenFile != "":
		return "", exit.Usagef("", "--token-file and --user without --wss both say who calls")
	case basic && !o.digest:
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(o.user+":"+password)), nil
	case o.tokenFile == "":
		return "", nil
	}
	token, err := firstLine("--token-file", o.tokenFile)
	if err == nil && (token == "" || !printable(token)) {
		err = exit.Withf(exit.Malformed, "", "--token-file: %s does not begin with a line of text", o.tokenFile)
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

// tokenLife is how long a timestamp is good for.
const tokenLife = 5 * time.Minute

// security is the header block of a login by WS-Security, new for each call; empty without one.
func (o *login) security(password string, now time.Time) string {
	if o.wss == "" {
		return ""
	}
	created := now.UTC().Format("2006-01-02T15:04:05.000Z")
	expires := now.UTC().Add(tokenLife).Format("2006-01-02T15:04:05.000Z")
	secret, kind, more := password, "PasswordText", ""
	if o.wss == "digest" {
		nonce := make([]byte, 16)
		_, _ = rand.Read(nonce)                                     // it never fails
		sum := sha1.Sum([]byte(string(nonce) + created + password)) //nolint:gosec // as above
		secret, kind = base64.StdEncoding.EncodeToString(sum[:]), "PasswordDigest"
		more = fmt.Sprintf(`<wsse:Nonce EncodingType="%s">%s</wsse:Nonce><wsu:Created>%s</wsu:Created>`, base64Type,
			base64.StdEncoding.EncodeToString(nonce), created)
	}
	return fmt.Sprintf(`<wsse:Security xmlns:wsse="%s" xmlns:wsu="%s"><wsu:Timestamp><wsu:Created>%s</wsu:Created>`+
		`<wsu:Expires>%s</wsu:Expires></wsu:Timestamp><wsse:UsernameToken><wsse:Username>%s</wsse:Username>`+
		`<wsse:Password Type="%s%s">%s</wsse:Password>%s</wsse:UsernameToken></wsse:Security>`,
		wsseSpace, wsuSpace, created, expires, escaped(o.user), tokenTypes, kind, escaped(secret), more)
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text))
	return b.String()
}

// httpHeader are the fields of each request.
func (o *callOptions) httpHeader(password string) (http.Header, error) {
	list, err := flags.ParseFields(o.fields)
	if err != nil {
		return nil, err
	}
	authorization, err := o.authorization(password)
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
