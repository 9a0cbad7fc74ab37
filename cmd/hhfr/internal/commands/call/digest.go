package call

import (
	"crypto/md5" //nolint:gosec // what HTTP Digest is made of
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"net/http"
	"regexp"
	"strings"
)

// digestLogin answers the challenges of HTTP Digest (RFC 7616). The first call of a session is
// refused for one; others use it until there is another.
type digestLogin struct {
	user, password string
	challenge      map[string]string // nil: there was none
	session        bool              // the challenge's algorithm is one of a session
	sum            func() hash.Hash
	count          int
	random         func() string // the client's nonce
}

// digestSums are the algorithms that are known, the best first.
var digestSums = []struct {
	name string
	sum  func() hash.Hash
}{{"SHA-256", sha256.New}, {"MD5", md5.New}}

// digestParam is a parameter of a challenge.
var digestParam = regexp.MustCompile(`([A-Za-z0-9-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))`)

// challenged takes the best challenge of a reply with status 401; false: there is none that can be
// answered.
func (d *digestLogin) challenged(header http.Header) bool {
	best := len(digestSums)
	for _, text := range header.Values("WWW-Authenticate") {
		if len(text) < 7 || !strings.EqualFold(text[:7], "Digest ") {
			continue
		}
		params := map[string]string{}
		for _, p := range digestParam.FindAllStringSubmatch(text[7:], -1) {
			params[strings.ToLower(p[1])] = strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(p[2]) + p[3]
		}
		if params["algorithm"] == "" {
			params["algorithm"] = "MD5"
		}
		for i, s := range digestSums {
			name, session := strings.CutSuffix(strings.ToUpper(params["algorithm"]), "-SESS")
			if name == s.name && i < best && (params["qop"] == "" || hasToken(params["qop"], "auth")) {
				best, d.challenge, d.session, d.sum, d.count = i, params, session, s.sum, 0
			}
		}
	}
	return best < len(digestSums)
}

func hasToken(list, token string) bool {
	for one := range strings.SplitSeq(list, ",") {
		if strings.EqualFold(strings.TrimSpace(one), token) {
			return true
		}
	}
	return false
}

// authorization answers the challenge for a request; empty: there was none (RFC 7616, section 3.4).
func (d *digestLogin) authorization(method, uri string) string {
	c := d.challenge
	if c == nil {
		return ""
	}
	of := func(parts ...string) string {
		h := d.sum()
		_, _ = h.Write([]byte(strings.Join(parts, ":")))
		return hex.EncodeToString(h.Sum(nil))
	}
	d.count++
	count, nonce := fmt.Sprintf("%08x", d.count), d.random()
	who := of(d.user, c["realm"], d.password)
	if d.session {
		who = of(who, c["nonce"], nonce)
	}
	what := of(method, uri)
	parts := []string{who, c["nonce"], what}
	more := ""
	if c["qop"] != "" {
		parts = []string{who, c["nonce"], count, nonce, "auth", what}
		more = fmt.Sprintf(`, qop=auth, nc=%s, cnonce="%s"`, count, nonce)
	} else if d.session {
		more = fmt.Sprintf(`, cnonce="%s"`, nonce)
	}
	if opaque, has := c["opaque"]; has {
		more += `, opaque="` + escapedQuotes(opaque) + `"`
	}
	return fmt.Sprintf(`Digest username="%s", realm="%s", nonce="%s", uri="%s", algorithm=%s, response="%s"%s`,
		escapedQuotes(d.user), escapedQuotes(c["realm"]), escapedQuotes(c["nonce"]), uri, c["algorithm"], of(parts...),
		more)
}

func escapedQuotes(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text)
}
