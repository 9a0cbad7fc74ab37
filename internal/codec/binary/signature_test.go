package binary_test

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"testing"

	"github.com/beevik/etree"
	dsig "github.com/russellhaering/goxmldsig"
	"github.com/russellhaering/goxmldsig/etreeutils"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/codec/binary"
)

// signed is an envelope whose Body child is signed, with the signature inside it (enveloped) or in
// the header (detached).
func signed(t *testing.T, ctx *dsig.SigningContext, n int, inside bool) []byte {
	doc := etree.NewDocument()
	require.NoError(t, doc.ReadFromBytes(enveloped(fmt.Sprintf(`<m:order xmlns:m="urn:o" ID="_%d">`+
		`<m:item a='1'>%d</m:item>
  <m:price>%d.50</m:price></m:order>`, n, n, n))))
	order := doc.Root().ChildElements()[0].ChildElements()[0]
	if inside {
		s, err := ctx.SignEnveloped(order)
		require.NoError(t, err)
		body := doc.Root().ChildElements()[0]
		body.RemoveChild(order)
		body.AddChild(s)
	} else {
		s, err := ctx.ConstructSignature(order, false)
		require.NoError(t, err)
		header := etree.NewElement("s:Header")
		header.AddChild(s)
		doc.Root().InsertChildAt(0, header)
	}
	b, err := doc.WriteToBytes()
	require.NoError(t, err)
	return b
}

// verify checks an enveloped signature with the library.
func verify(t *testing.T, cert *x509.Certificate, message []byte) error {
	doc := etree.NewDocument()
	require.NoError(t, doc.ReadFromBytes(message))
	order := doc.FindElement("//order")
	require.NotNil(t, order)
	ctx := dsig.NewDefaultValidationContext(&dsig.MemoryX509CertificateStore{Roots: []*x509.Certificate{cert}})
	_, err := ctx.Validate(order)
	return err
}

// verifyDetached checks a signature that stands apart from what it signs, which the library makes
// but does not verify: its digest and its value, over what the library canonicalizes.
func verifyDetached(t *testing.T, cert *x509.Certificate, message []byte) error {
	doc := etree.NewDocument()
	require.NoError(t, doc.ReadFromBytes(message))
	canonical := func(path string) []byte {
		e := doc.FindElement(path)
		require.NotNil(t, e, path)
		ctx, err := etreeutils.NSBuildParentContext(e)
		require.NoError(t, err)
		e, err = etreeutils.NSDetatch(ctx, e)
		require.NoError(t, err)
		b, err := dsig.MakeC14N10ExclusiveCanonicalizerWithPrefixList("").Canonicalize(e)
		require.NoError(t, err)
		return b
	}
	octets := func(path string) []byte {
		b, err := base64.StdEncoding.DecodeString(doc.FindElement(path).Text())
		require.NoError(t, err)
		return b
	}
	if digest := sha256.Sum256(canonical("//order")); !bytes.Equal(digest[:], octets("//DigestValue")) {
		return errors.New("digest differs")
	}
	return cert.CheckSignature(x509.SHA256WithRSA, canonical("//SignedInfo"), octets("//SignatureValue"))
}

// TestSignaturesVerifyAfterTheTrip: what was signed by a library verifies by it on the other side,
// and what was changed on the way would not.
func TestSignaturesVerifyAfterTheTrip(t *testing.T) {
	keys := dsig.RandomKeyStoreForTest()
	_, der, err := keys.GetKeyPair()
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	sign := dsig.NewDefaultSigningContext(keys)
	sign.Canonicalizer = dsig.MakeC14N10ExclusiveCanonicalizerWithPrefixList("")
	d := newDirection(t, binary.Options{})
	for inside, check := range map[bool]func(*testing.T, *x509.Certificate, []byte) error{true: verify,
		false: verifyDetached} {
		for n := range 5 {
			m := signed(t, sign, n, inside)
			_, got := d.send(t, nil, m, 4096)
			assert.NoError(t, check(t, cert, got), "enveloped %v, message %d", inside, n)
			bad := bytes.Replace(got, []byte(".50<"), []byte(".51<"), 1)
			assert.Error(t, check(t, cert, bad))
		}
	}
	assert.Zero(t, d.texts)
}
