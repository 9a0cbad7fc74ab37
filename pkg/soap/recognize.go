package soap

import (
	"bytes"
	"strings"
)

// MaxRecognize is how much of a message [Recognize] reads, in bytes. Headers with security tokens
// run to some tens of KiB; searching further is not worth it.
const MaxRecognize = 64 << 10

// Recognized is what the beginning of a message shows. Fields that the bytes seen so far do not
// show are empty.
type Recognized struct {
	// Version is None when no envelope was found.
	Version Version
	// Operation is the first child of Body. Its local part is empty when it was not reached, or the
	// Body is empty.
	Operation Name
	// Action is the text of the WS-Addressing Action header, if it came before the operation.
	Action string
	// Fault: the operation is the Fault of this version.
	Fault bool
	// Complete: the Body was reached and its first child, or its end, was seen; more bytes would
	// show nothing new.
	Complete bool
}

// Recognize examines the first bytes of a message, at most [MaxRecognize]. It accepts envelopes in
// UTF-8 and all encodings that agree with ASCII, in UTF-16, and after anything that precedes an
// envelope (MIME headers of a first part). It never fails, keeps no reference to prefix, and costs
// one pass without a parser.
func Recognize(prefix []byte) Recognized {
	var s envelopeScanner
	e := s.find(prefix)
	r := Recognized{Version: e.version, Fault: e.fault, Complete: e.complete,
		Operation: Name{string(e.operation.space), string(e.operation.local)}}
	if e.action != nil {
		r.Action = actionText(e.action)
	}
	return r
}

// OperationName is the local part of Recognized.Operation: a part of prefix, unless that is in
// UTF-16. It allocates nothing, for callers that look at every message.
func OperationName(prefix []byte) []byte {
	var s envelopeScanner
	return s.find(prefix).operation.local
}

// IsFault is Recognized.Fault. It allocates nothing, for callers that look at every message.
func IsFault(prefix []byte) bool {
	var s envelopeScanner
	return s.find(prefix).fault
}

// maxFaultCode is the longest code of a fault that is found, in bytes.
const maxFaultCode = 64

// FaultCodeIn returns the code of a fault, without its prefix, from the first bytes of the message:
// the faultcode of SOAP 1.1, or the Value of SOAP 1.2. It is a part of prefix, unless that is in
// UTF-16; nil if it is not there or too long.
func FaultCodeIn(prefix []byte) []byte {
	b := narrow(prefix[:min(len(prefix), MaxRecognize)])
	for _, name := range []string{"faultcode", "Value"} {
		_, behind, found := bytes.Cut(b, []byte(name))
		if !found {
			continue
		}
		_, behind, _ = bytes.Cut(behind, []byte{'>'})
		code, _, whole := bytes.Cut(behind, []byte{'<'})
		_, local := splitName(bytes.TrimSpace(code))
		if whole && len(local) <= maxFaultCode {
			return local
		}
	}
	return nil
}

var entities = strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">", "&quot;", `"`, "&apos;", "'")

func unescape(s string) string {
	if !strings.Contains(s, "&") {
		return s
	}
	return entities.Replace(s)
}

func actionText(b []byte) string {
	text := strings.TrimSpace(string(b))
	if inner, ok := strings.CutPrefix(text, "<![CDATA["); ok {
		text, _ = strings.CutSuffix(inner, "]]>")
		return text
	}
	if strings.Contains(text, "<") {
		return ""
	}
	return unescape(text)
}
