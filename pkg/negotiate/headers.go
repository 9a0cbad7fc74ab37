package negotiate

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/soap"
)

// Unchanging headers are SOAP header blocks, each as its XML text, that hold for every message of a session and are not sent with them: the
// session's context keeps them, and goes with it (docs/negotiation.md, section 3).

// checkHeaders refuses what is no header block, or may hold a secret: a context lies in stores.
func checkHeaders(blocks []string) error {
	if len(blocks) > maxChoices {
		return fmt.Errorf("%d header blocks, at most %d go", len(blocks), maxChoices)
	}
	for _, b := range blocks {
		el, err := soap.ParseElement([]byte(b), soap.Limits{MaxBytes: maxHeader, MaxDepth: 16, MaxElements: 256})
		switch {
		case err != nil:
			return fmt.Errorf("header block %.60q: %w", b, err)
		case el.Name.Space == xmlns.WSSE || el.Name.Space == xmlns.WSSE11 || el.Name.Space == xmlns.DS:
			return fmt.Errorf("header block %s may hold a secret", el.Name)
		case el.Name.Space == "":
			return fmt.Errorf("header block %s has no namespace", el.Name)
		}
	}
	return nil
}

func (w *writer) headers(blocks []string) {
	if err := checkHeaders(blocks); err != nil && w.err == nil {
		w.err = err
	}
	for _, b := range blocks {
		w.children = append(w.children, soap.Element{Name: w.name("UnchangingHeader"), Text: b})
	}
}

func (r *reader) headers() (blocks []string) {
	for _, c := range r.all("UnchangingHeader", maxChoices) {
		if len(c.Text) > maxHeader || c.Text == "" || len(c.Children) > 0 {
			r.fail("UnchangingHeader of %d octets, 1 to %d go, as text", len(c.Text), maxHeader)
			return nil
		}
		blocks = append(blocks, c.Text)
	}
	return blocks
}

// count reads the number in an element that may be there; 0 if it is not.
func (r *reader) count(local string, most int) int {
	v := r.optional(local)
	if v == "" {
		return 0
	}
	n, err := strconv.ParseUint(v, 10, 16)
	if err != nil || n > uint64(most) || strconv.FormatUint(n, 10) != v {
		r.fail("%s %.20q is not between 0 and %d", local, v, most)
	}
	return int(n)
}

// takeHeaders asks the service whether it goes by the blocks.
func (r *Responder) takeHeaders(path string, blocks []string) error {
	if len(blocks) == 0 {
		return nil
	}
	if r.cfg.UnchangingHeaders == nil {
		return errors.New("services here take headers with each message only")
	}
	if err := checkHeaders(blocks); err != nil {
		return err
	}
	return r.cfg.UnchangingHeaders(path, blocks)
}
