package soapjms

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseAddress(t *testing.T) {
	for text, want := range map[string]Address{
		"jms:queue:orders":                       {Queue: "orders", Priority: 4},
		"JMS:queue:a%2Fb%3Fc?priority=4":         {Queue: "a/b?c", Priority: 4},
		"jms:queue:q?timeToLive=1500&priority=9": {Queue: "q", Priority: 9, TimeToLive: 1500 * time.Millisecond},
		"jms:queue:q?deliveryMode=NON_PERSISTENT&replyToName=r%20s&targetService=sum": {
			Queue: "q", Priority: 4, Transient: true, ReplyTo: "r s", Service: "sum"},
	} {
		a, err := ParseAddress(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, a, text)
		again, err := ParseAddress(a.String())
		require.NoError(t, err, a.String())
		assert.Equal(t, a, again)
		assert.NotContains(t, a.RequestURI(), "targetService")
	}
	for text, says := range map[string]string{
		"http://h/":                         "an address of a queue is jms:queue:NAME",
		"jms:jndi:dynamicQueues/q":          "names of JNDI are known to Java alone",
		"jms:topic:t":                       "a request to a topic has many receivers, or none",
		"jms:orders":                        `there is no variant "orders"`,
		"jms:queue:":                        "it has no name of a queue",
		"jms:queue:%zz":                     "it has no name of a queue",
		"jms:queue:q?priority=10":           "priority is 0 to 9",
		"jms:queue:q?timeToLive=-1":         "timeToLive is a number of milliseconds",
		"jms:queue:q?deliveryMode=x":        "deliveryMode is PERSISTENT or NON_PERSISTENT",
		"jms:queue:q?jndiURL=x":             "jndiURL is no parameter of a queue",
		"jms:queue:q?priority=1&priority=2": "priority stands twice",
		"jms:queue:q?a=%z":                  "invalid URL escape",
	} {
		_, err := ParseAddress(text)
		require.ErrorIs(t, err, &Error{Code: BadAddress}, text)
		assert.ErrorContains(t, err, says)
	}
}

// What is an address stays the same by being written.
func FuzzParseAddress(f *testing.F) {
	for _, seed := range []string{
		"jms:queue:orders", "jms:queue:a%2Fb?timeToLive=1500&priority=9&replyToName=r%20s&targetService=sum",
		"jms:queue:q?deliveryMode=NON_PERSISTENT", "jms:topic:t", "jms:jndi:q?jndi-a=b",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseAddress(text)
		if err != nil {
			return
		}
		again, err := ParseAddress(a.String())
		require.NoError(t, err, a.String())
		assert.Equal(t, a, again)
	})
}

func TestNewBroker(t *testing.T) {
	b, queue, err := NewBroker("amqp://me@broker.example/orders%2Fnew", "secret", nil, nil)
	require.NoError(t, err)
	assert.Equal(t, "broker.example:5672", b.String())
	assert.Equal(t, "orders/new", queue)
	assert.True(t, b.Named())
	for text, says := range map[string]string{
		"nats://h":           "is no broker",
		"amqp://":            "is no broker",
		"amqp://me:secret@h": `"amqp://me:xxxxx@h" has a password, which others can see`,
		"amqp://%":           "is no broker",
	} {
		_, _, err := NewBroker(text, "", nil, nil)
		require.ErrorIs(t, err, &Error{Code: BadAddress}, text)
		assert.ErrorContains(t, err, says)
		assert.NotContains(t, err.Error(), "secret")
	}
}
