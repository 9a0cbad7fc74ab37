package engines_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/engines"
	"github.com/hhfr/hhfr/pkg/ctxstore"
)

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, tc := range []struct {
		spec string
		code ctxstore.Code
		says string
	}{
		{spec: "mem:"},
		{spec: dir},
		{spec: filepath.Join(dir, "new", "one")},
		{spec: "relative"},
		{spec: "./with:colon"},
		{spec: "bolt:" + filepath.Join(dir, "file.db")},
		{spec: "bolt:relative.db"},
		{spec: "bolt:", code: ctxstore.Invalid, says: "write bolt:FILE"},
		{spec: "mem:x", code: ctxstore.Invalid, says: "write mem: alone"},
		{spec: "", code: ctxstore.Invalid, says: "no folder named"},
		{spec: "redis://localhost", code: ctxstore.Invalid,
			says: "known forms: mem:, bolt:FILE, http[s]://HOST:PORT/PATH, " +
				"nats[+tls]://HOST,…/BUCKET[?replicas=N], DIR"},
		{spec: "nats://localhost", code: ctxstore.Invalid, says: "the bucket \"\" is not made of"},
		{spec: "nats://a:b@localhost/x", code: ctxstore.Invalid, says: "takes no user and password"},
		{spec: "nats://127.0.0.1:1,127.0.0.1:2/x", code: ctxstore.Unavailable, says: "does a NATS server run there?"},
		{spec: "nats+tls://127.0.0.1:1/x", code: ctxstore.Unavailable, says: "does a NATS server run there?"},
		{spec: "http:/x", code: ctxstore.Invalid, says: "no engine for"},
		{spec: "http://", code: ctxstore.Invalid, says: "is no http or https URL"},
		{spec: "https://a:b@localhost/", code: ctxstore.Invalid, says: "takes no user"},
		{spec: "http://127.0.0.1:1/", code: ctxstore.Unavailable, says: "does a context service run there?"},
	} {
		s, err := engines.Open(t.Context(), tc.spec, engines.Options{})
		if tc.code != 0 {
			require.ErrorIs(t, err, &ctxstore.Error{Code: tc.code}, "%q", tc.spec)
			assert.ErrorContains(t, err, tc.says)
			assert.Nil(t, s)
			continue
		}
		require.NoError(t, err, "%q", tc.spec)
		fp, err := ctxstore.Shapes{Store: s}.Put(t.Context(), []byte("shape"))
		require.NoError(t, err)
		_, err = ctxstore.Shapes{Store: s}.Get(t.Context(), fp)
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
	_, err := engines.Open(t.Context(), "http://127.0.0.1:1/", engines.Options{MaxBytes: 1 << 30})
	require.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.Invalid})
	_, err = engines.Open(t.Context(), filepath.Join(dir, "missing"), engines.Options{ReadOnly: true})
	assert.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.NotFound})
}
