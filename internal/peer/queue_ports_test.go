package peer

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/wsdl"
)

// A description names the queues of its service beside its URL, which stays the first.
func TestDescriptionsNameQueues(t *testing.T) {
	plain := Sum().WSDL("http://127.0.0.1/sum")
	assert.Equal(t, plain, atQueues(plain, "sum", nil))
	assert.Equal(t, []byte("<other/>"), atQueues([]byte("<other/>"), "sum", []string{"orders"}))
	text := atQueues(plain, "sum", []string{"orders", "a&b"})
	assert.Contains(t, string(text), `transport="http://www.w3.org/2010/soapjms/"`)
	assert.Contains(t, string(text), `<soap11:address location="jms:queue:orders?targetService=sum"/>`)
	assert.Contains(t, string(text), `jms:queue:a&amp;b?targetService=sum`)
	d, err := wsdl.Parse(t.Context(), text)
	require.NoError(t, err)
	found := d.Named("sum", "")
	require.Len(t, found, 3)
	assert.Equal(t, "http://127.0.0.1/sum", d.LocationOf(found[0]))
	assert.Equal(t, "jms:queue:orders?targetService=sum", d.LocationOf(found[2]))
}
