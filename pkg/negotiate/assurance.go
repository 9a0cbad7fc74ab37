package negotiate

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// inOrder ends the URI of an assurance whose messages are delivered in order.
const inOrder = ":in-order"

// AssuranceURI returns the URI of an assurance: [AtMostOnce] for wsrm.AtMostOnce without order.
func AssuranceURI(a wsrm.Assurance, ordered bool) string {
	uri := AssurancePrefix + a.String()
	if ordered {
		uri += inOrder
	}
	return uri
}

// ParseAssurance is the reverse, for assurances that have a sequence.
func ParseAssurance(uri string) (a wsrm.Assurance, ordered, ok bool) {
	name, ordered := strings.CutSuffix(strings.TrimPrefix(uri, AssurancePrefix), inOrder)
	for a := wsrm.AtMostOnce; a <= wsrm.ExactlyOnce; a++ {
		if a.String() == name && strings.HasPrefix(uri, AssurancePrefix) {
			return a, ordered, uri != AtMostOnce
		}
	}
	return 0, false, false
}

// checkSequence refuses a text that is no URI of a sequence: 16 bytes in hexadecimal digits of
// lower case.
func checkSequence(uri string) error {
	digits, ok := strings.CutPrefix(uri, ctxstore.SequencePrefix)
	if id, err := hex.DecodeString(digits); !ok || err != nil || len(id) != 16 || strings.ToLower(digits) != digits {
		return fmt.Errorf("%.80q names no sequence", uri)
	}
	return nil
}

// ErrNoSequence means that an assurance needs a sequence, and none is named.
var ErrNoSequence = errors.New("an assurance that needs a Sequence, and none")

// sequence writes the URI of a sequence, and in an answer whether its state is known.
func (w *documentWriter) sequence(uri, state string) {
	if uri == "" {
		return
	}
	el := soap.Element{Name: w.name("Sequence"), Text: uri}
	if state != "" {
		el.Attrs = []soap.Attr{{Name: "state", Value: state}}
	}
	if err := checkSequence(uri); err != nil && w.err == nil {
		w.err = err
	}
	w.children = append(w.children, el)
}

// sequence reads what the writer's sequence wrote; state is "" where there is none.
func (r *documentReader) sequence() (uri, state string) {
	found := r.all("Sequence", 1)
	if len(found) == 0 {
		return "", ""
	}
	uri, state = strings.TrimSpace(found[0].Text), found[0].Attr("state")
	if err := checkSequence(uri); err != nil {
		r.fail("Sequence: %w", err)
	}
	if state != "" && state != sequenceNew && state != sequenceKnown {
		r.fail("Sequence has the state %.20q", state)
	}
	return uri, state
}

// The states of a sequence at the responder.
const (
	sequenceNew   = "new"
	sequenceKnown = "known"
)

func stateName(known bool) string {
	if known {
		return sequenceKnown
	}
	return sequenceNew
}
