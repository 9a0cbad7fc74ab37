package httpmsg

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A head is known on the lane that it came on, not on that of another client, until newer ones have
// come; one that is too long is not kept.
func TestRecent(t *testing.T) {
	var r recent[int]
	assert.Nil(t, r.get(0, nil))
	one := 1
	r.put(1, []byte("secret"), &one)
	assert.Same(t, &one, r.get(1, []byte("secret")))
	assert.Nil(t, r.get(2, []byte("secret")))
	assert.Nil(t, r.get(1, []byte("Secret")))
	long := []byte(strings.Repeat("x", maxRecent+1))
	r.put(1, long, &one)
	assert.Nil(t, r.get(1, long))
	for range recentHeads {
		assert.NotNil(t, r.get(1, []byte("secret")))
		r.put(1, []byte("other"), &one)
	}
	assert.Nil(t, r.get(1, []byte("secret")))
}
