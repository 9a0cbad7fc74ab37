// Package soapjms carries plain SOAP over queues, as SOAP over JMS 1.0 says (W3C, 2012), in
// messages as JMS has them on AMQP 1.0: a [Requester] is an [http.RoundTripper], and a [Consumer]
// has an [http.Handler] answer, so that neither clients nor services know of queues.
package soapjms

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Address is where a service has its requests: jms:queue:NAME?name=value&… (section 4).
type Address struct {
	// Queue is its name.
	Queue string
	// Transient: the broker need not keep requests over a restart (deliveryMode NON_PERSISTENT).
	Transient bool
	// TimeToLive is how long a request is of use; 0: without end. It has whole milliseconds.
	TimeToLive time.Duration
	// Priority is 0 to 9; 4 is the default of JMS.
	Priority uint8
	// ReplyTo is the queue that replies come to; empty: one of the connection's own.
	ReplyTo string
	// Service chooses one of several services at the queue (targetService); empty: none.
	Service string
}

// defaultPriority is that of JMS.
const defaultPriority = 4

// ParseAddress reads one. Errors: BadAddress, that says which part of it.
func ParseAddress(text string) (a Address, err error) {
	bad := func(format string, args ...any) (Address, error) {
		return Address{}, &Error{Code: BadAddress, Err: fmt.Errorf("%q: "+format, append([]any{text}, args...)...)}
	}
	scheme, rest, _ := strings.Cut(text, ":")
	variant, rest, _ := strings.Cut(rest, ":")
	switch {
	case !strings.EqualFold(scheme, "jms"):
		return bad("an address of a queue is jms:queue:NAME")
	case variant == "jndi":
		return bad("names of JNDI are known to Java alone: name the queue, jms:queue:NAME")
	case variant == "topic":
		return bad("a request to a topic has many receivers, or none: name a queue, jms:queue:NAME")
	case variant != "queue":
		return bad("there is no variant %q: name a queue, jms:queue:NAME", variant)
	}
	name, query, _ := strings.Cut(rest, "?")
	a.Priority = defaultPriority
	if a.Queue, err = url.PathUnescape(name); err != nil || a.Queue == "" {
		return bad("it has no name of a queue")
	}
	given, err := url.ParseQuery(query)
	if err != nil {
		return bad("%w", err)
	}
	for key, values := range given {
		if len(values) > 1 {
			return bad("%s stands twice", key)
		}
		if err := a.set(key, values[0]); err != nil {
			return bad("%w", err)
		}
	}
	return a, nil
}

func (a *Address) set(key, value string) error {
	switch key {
	case "deliveryMode":
		if value != "PERSISTENT" && value != "NON_PERSISTENT" {
			return fmt.Errorf("deliveryMode is PERSISTENT or NON_PERSISTENT, not %q", value)
		}
		a.Transient = value == "NON_PERSISTENT"
	case "timeToLive":
		ms, err := strconv.ParseUint(value, 10, 32)
		if err != nil {
			return fmt.Errorf("timeToLive is a number of milliseconds, at most 4294967295, not %q", value)
		}
		a.TimeToLive = time.Duration(ms) * time.Millisecond
	case "priority":
		priority, err := strconv.ParseUint(value, 10, 8)
		if err != nil || priority > 9 {
			return fmt.Errorf("priority is 0 to 9, not %q", value)
		}
		a.Priority = uint8(priority)
	case "replyToName":
		a.ReplyTo = value
	case "targetService":
		a.Service = value
	default:
		return fmt.Errorf("%s is no parameter of a queue: there are deliveryMode, timeToLive, priority, "+
			"replyToName and targetService", key)
	}
	return nil
}

// String is the address in its canonical form; what is as by default is left out.
func (a Address) String() string {
	text, first := a.RequestURI(), "?"
	if strings.Contains(text, first) {
		first = "&"
	}
	if a.Service != "" {
		text += first + "targetService=" + url.QueryEscape(a.Service)
	}
	return text
}

// RequestURI is the address as requests have it: without targetService (section 2.2.4).
func (a Address) RequestURI() string {
	var list []string
	if a.Transient {
		list = append(list, "deliveryMode=NON_PERSISTENT")
	}
	if a.TimeToLive > 0 {
		list = append(list, fmt.Sprintf("timeToLive=%d", a.TimeToLive.Milliseconds()))
	}
	if a.Priority != defaultPriority {
		list = append(list, fmt.Sprintf("priority=%d", a.Priority))
	}
	if a.ReplyTo != "" {
		list = append(list, "replyToName="+url.QueryEscape(a.ReplyTo))
	}
	text := "jms:queue:" + url.PathEscape(a.Queue)
	if len(list) > 0 {
		text += "?" + strings.Join(list, "&")
	}
	return text
}
