package trust

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hhfr/hhfr/internal/resolve"
)

// TermuxRoots adds Termux's certificates to those that Go finds, when the Linux build runs on
// Android; nil elsewhere. Go looks where Linux distributions have theirs, and where Android has its
// own only if it was built for Android (crypto/x509, root_linux.go). As usual, SSL_CERT_FILE and
// SSL_CERT_DIR take precedence.
func TermuxRoots(system resolve.System) (*x509.CertPool, error) {
	given := os.Getenv("SSL_CERT_FILE") != "" || os.Getenv("SSL_CERT_DIR") != ""
	if given || system.Prefix == "" || system.GOOS != "linux" || !system.Android() {
		return nil, nil
	}
	name := filepath.Join(system.Prefix, "etc", "tls", "cert.pem")
	pem, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("certificates of Termux: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, err
	}
	pool.AppendCertsFromPEM(pem)
	return pool, nil
}
