package wscontext

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/soap"
)

// envelopeWriter writes the envelope of a request or a reply.
type envelopeWriter struct {
	buf  []byte
	name string // of the Body's child, with its prefix
}

// newWriter begins an envelope whose Body has one element, with attributes in pairs.
func newWriter(v soap.Version, name soap.Name, attrs ...string) *envelopeWriter {
	w := &envelopeWriter{name: qname(name)}
	w.raw(`<?xml version="1.0" encoding="UTF-8"?>`, "\n<"+prefixSOAP+":Envelope xmlns:"+prefixSOAP+`="`, v.Namespace(),
		`"><`+prefixSOAP+":Body><", w.name, " xmlns:"+prefixStd+`="`+xmlns.WSContext+`"`)
	w.raw(" xmlns:" + prefixOwn + `="` + xmlns.HHFRContext + `"`)
	for pair := range slices.Chunk(attrs, 2) {
		if pair[1] != "" {
			w.raw(" ", pair[0], `="`, escape(pair[1]), `"`)
		}
	}
	w.raw(">")
	return w
}

// qname is a name with the prefix that envelopes of this package have for it.
func qname(name soap.Name) string {
	if name.Space == xmlns.HHFRContext {
		return prefixOwn + ":" + name.Local
	}
	return prefixStd + ":" + name.Local
}

func (w *envelopeWriter) raw(parts ...string) {
	for _, p := range parts {
		w.buf = append(w.buf, p...)
	}
}

// field adds an element with a text.
func (w *envelopeWriter) field(name soap.Name, text string) *envelopeWriter {
	n := qname(name)
	w.raw("<", n, ">", escape(text), "</", n, ">")
	return w
}

// contents adds a value: as it is if it is XML that can stand here, otherwise in base64.
func (w *envelopeWriter) contents(value []byte) *envelopeWriter {
	switch {
	case len(value) == 0:
	case isContents(value):
		w.buf = append(w.buf, value...)
	default:
		n := qname(own("binary"))
		w.raw("<", n, ">")
		w.buf = base64.StdEncoding.AppendEncode(w.buf, value)
		w.raw("</", n, ">")
	}
	return w
}

// end ends the envelope and returns it.
func (w *envelopeWriter) end() []byte {
	w.raw("</", w.name, "></"+prefixSOAP+":Body></"+prefixSOAP+":Envelope>")
	return w.buf
}

// seconds is the lexical form of a time to live.
func seconds(d time.Duration) string {
	text := strconv.FormatInt(int64(d/time.Second), 10)
	if rest := d % time.Second; rest != 0 {
		text += "." + strings.TrimRight(strconv.Itoa(int(rest + time.Second))[1:], "0")
	}
	return text
}

// parseSeconds reads what seconds writes; whole or decimal, not negative.
func parseSeconds(text string) (time.Duration, bool) {
	whole, fraction, _ := strings.Cut(text, ".")
	s, err := strconv.ParseUint(whole, 10, 33)
	if err != nil || len(fraction) > 9 {
		return 0, false
	}
	var ns uint64
	if fraction != "" {
		if ns, err = strconv.ParseUint((fraction + "00000000")[:9], 10, 32); err != nil {
			return 0, false
		}
	}
	return time.Duration(s)*time.Second + time.Duration(ns), true
}

// instant is the lexical form of the time at which a context expires; empty for never.
func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
