package mock

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/hhfr/hhfr/internal/envelope"
	"github.com/hhfr/hhfr/internal/values"
	"github.com/hhfr/hhfr/internal/wsdl"
	"github.com/hhfr/hhfr/internal/xsd"
	"github.com/hhfr/hhfr/pkg/soap"
)

// KnownReply is a reply with its request, as they were recorded.
type KnownReply struct {
	Header         http.Header // of the request
	Request, Reply []byte
	Status         int // of the reply
}

// recordedReplies are the replies of one operation by the values that requests are matched by.
type recordedReplies struct {
	of     map[string][]KnownReply
	served map[string]int
}

// record takes the exchanges of operations of the description; others are left out. It is an error
// if there is none.
func (m *Mock) record(all []KnownReply) error {
	if all == nil {
		return nil
	}
	m.recorded = map[string]*recordedReplies{}
	for _, x := range all {
		tree, err := envelope.Parse("request", x.Header.Get("Content-Type"), x.Request)
		if err != nil {
			continue
		}
		op := m.find(tree, actionOf(x.Header))
		if op == nil || op.Output == nil {
			continue
		}
		known := m.recorded[op.Name]
		if known == nil {
			known = &recordedReplies{of: map[string][]KnownReply{}, served: map[string]int{}}
			m.recorded[op.Name] = known
		}
		key := m.key(op, tree.Body)
		known.of[key] = append(known.of[key], x)
	}
	if len(m.recorded) == 0 {
		return fmt.Errorf("of %d exchanges none is of an operation of the WSDL", len(all))
	}
	for _, path := range m.cfg.Match {
		if !m.met[path] {
			return fmt.Errorf("no request in it has %s, by which requests are matched", path)
		}
	}
	return nil
}

// key is what a request has at the paths that requests are matched by.
func (m *Mock) key(op *wsdl.Operation, body *xsd.DocumentNode) string {
	if len(m.cfg.Match) == 0 {
		return ""
	}
	v := values.New(m.d.Set(), op.Input.Contents(), op.SOAP).Read(body)
	var parts []string
	for _, path := range m.cfg.Match {
		if found, err := v.At(path); err == nil {
			m.met[path] = true
			parts = append(parts, path+"="+strconv.Quote(found.Plain()))
		}
	}
	return strings.Join(parts, " ")
}

// maxKeys is how many are named in a fault.
const maxKeys = 8

// next is the reply to a request with a key.
func (r *recordedReplies) next(op *wsdl.Operation, key string) ([]byte, int, error) {
	list := r.of[key]
	if len(list) == 0 {
		there := slices.Sorted(maps.Keys(r.of))
		return nil, 0, &soapFault{soap.Server, fmt.Errorf("no reply of %s with %s is recorded: there are %s", op.Name,
			key, there[:min(len(there), maxKeys)])}
	}
	x := list[r.served[key]%len(list)]
	r.served[key]++
	return x.Reply, x.Status, nil
}
