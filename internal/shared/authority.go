package shared

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates for tests.
type Authority struct {
	tb   testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority creates one that is trusted only where a test configures it.
func NewAuthority(tb testing.TB) *Authority {
	tb.Helper()
	a := &Authority{tb: tb}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
	}
	var der []byte
	a.key, der = a.sign(template, nil)
	var err error
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		tb.Fatal(err)
	}
	return a
}

func (a *Authority) sign(template, parent *x509.Certificate) (*ecdsa.PrivateKey, []byte) {
	a.tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.tb.Fatal(err)
	}
	by := a.key
	if parent == nil {
		parent, by = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	if err != nil {
		a.tb.Fatal(err)
	}
	return key, der
}

// Issue signs a certificate for servers and clients of these hosts, names or IP addresses, that is
// valid for d; below 0 it has expired.
func (a *Authority) Issue(d time.Duration, hosts ...string) tls.Certificate {
	a.tb.Helper()
	end := time.Now().Add(d)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "test"},
		NotBefore: end.Add(-24 * time.Hour), NotAfter: end,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	key, der := a.sign(template, a.cert)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Pool is the authority as roots to trust.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// WriteFile writes the authority's certificate as a PEM file, and returns its path.
func (a *Authority) WriteFile(dir, name string) string {
	a.tb.Helper()
	return WritePEM(a.tb, filepath.Join(dir, name), "CERTIFICATE", a.cert.Raw)
}

// WriteCertificate writes a certificate and its key as PEM files NAME.pem and NAME.key, and returns
// their paths.
func WriteCertificate(tb testing.TB, dir, name string, c tls.Certificate) (cert, key string) {
	tb.Helper()
	secret, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		tb.Fatal(err)
	}
	cert = WritePEM(tb, filepath.Join(dir, name+".pem"), "CERTIFICATE", c.Certificate[0])
	return cert, WritePEM(tb, filepath.Join(dir, name+".key"), "PRIVATE KEY", secret)
}

// WritePEM writes one block of PEM to a file.
func WritePEM(tb testing.TB, path, kind string, der []byte) string {
	tb.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}
