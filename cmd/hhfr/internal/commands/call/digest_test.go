package call

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The examples of RFC 7616, section 3.9.1, and of RFC 2069 as RFC 2617 corrects it.
func TestDigest(t *testing.T) {
	const (
		of7616 = `realm="http-auth@example.org", qop="auth, auth-int", ` +
			`nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", ` +
			`opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"`
		sha = `Digest algorithm=SHA-256, ` + of7616
		md  = `digest ` + of7616 + `, algorithm="MD5"`
	)
	for name, c := range map[string]struct {
		challenges []string
		want       string
	}{
		"MD5":     {[]string{md}, "8ca523f5e9506fed4657c9700eebdbec"},
		"SHA-256": {[]string{sha}, "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"},
		"the best": {[]string{"Basic realm=x", md, sha},
			"753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"},
	} {
		d := &digestLogin{user: "Mufasa", password: "Circle of Life",
			random: func() string { return "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ" }}
		assert.Empty(t, d.authorization("GET", "/dir/index.html"), "without a challenge")
		require.True(t, d.challenged(http.Header{"Www-Authenticate": c.challenges}), name)
		got := d.authorization("GET", "/dir/index.html")
		assert.Contains(t, got, `response="`+c.want+`", qop=auth, nc=00000001, cnonce="f2/wE4`, name)
		assert.Contains(t, got, `username="Mufasa", realm="http-auth@example.org"`, name)
		assert.Contains(t, got, `opaque="FQhe/`, name)
		assert.Contains(t, d.authorization("GET", "/"), "nc=00000002", name)
	}
	d := &digestLogin{user: `a"b`, password: "x", random: func() string { return "c" }}
	for _, none := range []string{"", "Basic realm=x", `Digest realm="x", nonce="y", qop="auth-int"`,
		`Digest realm="x", nonce="y", algorithm=SHA-512-256`} {
		assert.False(t, d.challenged(http.Header{"Www-Authenticate": {none}}), none)
	}
	require.True(t, d.challenged(http.Header{"Www-Authenticate": {`Digest realm="a \"q\"", nonce="n"`}}))
	got := d.authorization("POST", "/s")
	want := `Digest username="a\"b", realm="a \"q\"", nonce="n", uri="/s", algorithm=MD5, `
	assert.True(t, strings.HasPrefix(got, want), got)
	assert.NotContains(t, got, "qop")
}
