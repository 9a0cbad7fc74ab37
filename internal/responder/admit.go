package responder

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"

	"github.com/hhfr/hhfr/pkg/negotiate"
)

// admit asks the configuration whether the sender of a request may have a session. Its error is
// refusedItems.
func (c *Config) admit(req *http.Request) error {
	if c.Admit == nil {
		return nil
	}
	if err := c.Admit(req); err != nil {
		return negotiate.RefusedItems{{Item: "Admission", Why: err.Error()}}
	}
	return nil
}

// AdmitCertificate is for [Config].Admit: clients that presented a certificate which the
// server's TLS has verified may have a session.
func AdmitCertificate(req *http.Request) error {
	if req.TLS == nil || len(req.TLS.VerifiedChains) == 0 {
		return errors.New("only clients with a certificate are admitted")
	}
	return nil
}

// AdmitBearer is for [Config].Admit: clients that send one of these tokens (RFC 6750,
// section 2.1) with the offer may have a session.
func AdmitBearer(tokens []string) func(*http.Request) error {
	hashes := make([][sha256.Size]byte, len(tokens))
	for i, t := range tokens {
		hashes[i] = sha256.Sum256([]byte(t))
	}
	return func(req *http.Request) error {
		scheme, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
		hash, known := sha256.Sum256([]byte(strings.TrimSpace(token))), 0
		for i := range hashes {
			known |= subtle.ConstantTimeCompare(hash[:], hashes[i][:])
		}
		if !strings.EqualFold(scheme, "Bearer") || known != 1 {
			return errors.New("only clients with a bearer token that is known here are admitted")
		}
		return nil
	}
}
