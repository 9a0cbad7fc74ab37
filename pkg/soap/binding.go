package soap

import (
	"fmt"
	"mime"
	"strings"
)

// Field is one HTTP field, with its name in the case in which it is written.
type Field struct{ Name, Value string }

// ContentType returns the media type of an envelope of the version in UTF-8. SOAP 1.2 has the
// action as a parameter when it is not empty; for SOAP 1.1 action is ignored. An action that cannot
// stand in a field is an [Error] with the code BadField.
func ContentType(v Version, action string) (string, error) {
	if err := checkValue(action); err != nil {
		return "", err
	}
	if v != V12 {
		return versions[V11].mediaType + "; charset=utf-8", nil
	}
	s := versions[V12].mediaType + "; charset=utf-8"
	if action != "" {
		s += `; action="` + action + `"`
	}
	return s, nil
}

// RequestFields returns the fields of a request that carries an envelope of the version:
// Content-Type, and for SOAP 1.1 a quoted SOAPAction, `""` when action is empty. SOAP 1.2 has no
// SOAPAction.
func RequestFields(v Version, action string) ([]Field, error) {
	contentType, err := ContentType(v, action)
	if err != nil {
		return nil, err
	}
	fields := []Field{{"Content-Type", contentType}}
	if v != V12 {
		// The canonical form of net/http, Soapaction, is refused by devices in the field; the name
		// keeps this case on the wire.
		fields = append(fields, Field{"SOAPAction", `"` + action + `"`})
	}
	return fields, nil
}

func checkValue(s string) error {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c == 0x7F || c == '"' || c == '\\' {
			return &Error{Code: BadField, At: int64(i), Err: fmt.Errorf("byte %#02x in %q", c, s)}
		}
	}
	return nil
}

// Media is what a Content-Type says about a message.
type Media struct {
	// Type is the media type in lower case, without parameters.
	Type string
	// Charset in lower case, empty if not given.
	Charset string
	// Action is the action parameter of SOAP 1.2.
	Action string
	// Start and StartInfo name the root part of a multipart message and its type.
	Start, StartInfo string
	// Boundary of a multipart message.
	Boundary string
}

// ParseContentType reads a Content-Type. It is tolerant: parameters that do not parse are left out,
// and an empty value gives an empty Media.
func ParseContentType(value string) Media {
	kind, params, err := mime.ParseMediaType(value)
	if err != nil {
		kind, _, _ = strings.Cut(value, ";")
		kind = strings.ToLower(strings.TrimSpace(kind))
	}
	return Media{
		Type: kind, Charset: strings.ToLower(params["charset"]), Action: params["action"],
		Start: params["start"], StartInfo: params["start-info"], Boundary: params["boundary"],
	}
}

// Version returns the SOAP version that the media type announces; None when it announces none
// (multipart types without start-info, others).
func (m Media) Version() Version {
	kind := m.Type
	if strings.HasPrefix(kind, "multipart/") {
		kind = strings.ToLower(m.StartInfo)
	}
	for v := V11; int(v) < len(versions); v++ {
		if kind == versions[v].mediaType {
			return v
		}
	}
	return None
}

// binaryTypes are the media types of envelopes that are not XML text: Fast Infoset, and the binary
// XML of .NET.
var binaryTypes = map[string]Version{
	"application/fastinfoset": V11, "application/soap+fastinfoset": V12,
	"application/soap+msbin1": V12, "application/soap+msbinsession1": V12,
}

// BinaryVersion returns the SOAP version of an envelope that the media type announces in another
// form than XML text; None for all others.
func (m Media) BinaryVersion() Version { return binaryTypes[m.Type] }

// ParseAction reads the value of a SOAPAction field, with quotes or without.
func ParseAction(value string) string {
	value = strings.TrimSpace(value)
	if len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"' {
		return value[1 : len(value)-1]
	}
	return value
}

// FaultStatus returns the HTTP status of a reply with a fault: 500, but 400 for SOAP 1.2 when the
// sender is at fault.
func FaultStatus(v Version, code FaultCode) int {
	if v == V12 && code == Client {
		return 400
	}
	return 500
}
