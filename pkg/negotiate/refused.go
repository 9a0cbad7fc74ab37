package negotiate

import (
	"fmt"
	"strings"

	"github.com/hhfr/hhfr/pkg/soap"
)

// RefusedItems is why an offer is refused as a whole.
type RefusedItems []Declined

func (items RefusedItems) Error() string {
	why := make([]string, len(items))
	for i, r := range items {
		why[i] = r.Item + ": " + r.Why
	}
	return strings.Join(why, "; ")
}

// refused writes refused items as they stand in an answer, or in the detail of a fault.
func (w *documentWriter) refused(items []Declined) {
	for i, r := range items {
		if i == maxChoices {
			return
		}
		w.children = append(w.children, soap.Element{
			Name:  w.name("Refused"),
			Attrs: []soap.Attr{{Name: "item", Value: printable(r.Item)}},
			Text:  printable(r.Why),
		})
	}
}

// printable makes a text fit for an element: other characters become '?', and the text ends at 300
// bytes.
func printable(s string) string {
	const most = 300
	b := []byte(s[:min(len(s), most)])
	for i, c := range b {
		if c < 0x20 || c >= 0x7F {
			b[i] = '?'
		}
	}
	return strings.TrimSpace(string(b))
}

func (r *documentReader) refused() (items []Declined) {
	for _, c := range r.all("Refused", maxChoices) {
		items = append(items, Declined{printable(c.Attr("item")), printable(strings.TrimSpace(c.Text))})
	}
	return items
}

// ignored writes the names of elements that were ignored.
func (w *documentWriter) ignored(names []soap.Name) {
	for i, n := range names {
		if i == maxChoices {
			return
		}
		w.children = append(w.children, soap.Element{
			Name:  w.name("Ignored"),
			Attrs: []soap.Attr{{Name: "namespace", Value: printable(n.Space)}},
			Text:  printable(n.Local),
		})
	}
}

func (r *documentReader) ignored() (names []soap.Name) {
	for _, c := range r.all("Ignored", maxChoices) {
		names = append(names,
			soap.Name{Space: printable(c.Attr("namespace")), Local: printable(strings.TrimSpace(c.Text))})
	}
	return names
}

// unknown lists children that were not read, at most as many as go into a message.
func (r *documentReader) unknown() (names []soap.Name) {
	for i := range r.el.Children {
		n := r.el.Children[i].Name
		if (n.Space != r.el.Name.Space || !r.asked[n.Local]) && len(names) < maxChoices {
			names = append(names, n)
		}
	}
	return names
}

// FaultAnswer is a fault that came in place of an answer. items are set when the peer supports
// HHFR, and names what it does not agree to.
type FaultAnswer struct {
	Fault soap.Fault
	Items RefusedItems
}

func (e *FaultAnswer) Error() string {
	if len(e.Items) > 0 {
		return "refused: " + e.Items.Error()
	}
	return fmt.Sprintf("SOAP fault: %.200q", e.Fault.Reason)
}

// Is makes it a malformed answer for callers.
func (e *FaultAnswer) Is(t error) bool { o, ok := t.(*Error); return ok && o.Code == Malformed }

// refusalName is the detail of a fault that refuses an offer on purpose.
var refusalName = soap.Name{Space: OfferName.Space, Local: "Refusal"}

// RefusalFault names to an initiator what is not agreed to.
func RefusalFault(items RefusedItems) soap.Fault {
	w := documentWriter{ns: refusalName.Space}
	w.refused(items)
	return soap.Fault{
		Code:   soap.Server,
		Reason: printable("cannot agree: " + items.Error()),
		Detail: []soap.Element{w.element(refusalName.Local)},
	}
}

func readFault(f soap.Fault) *FaultAnswer {
	e := &FaultAnswer{Fault: f}
	for i := range f.Detail {
		if f.Detail[i].Name == refusalName {
			e.Items = (&documentReader{el: &f.Detail[i], asked: map[string]bool{}}).refused()
		}
	}
	return e
}

// Busy is the reason to refuse an offer that could be met at another time.
var Busy = RefusedItems{{"Session", "too many sessions"}}
