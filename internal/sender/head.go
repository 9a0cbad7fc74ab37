package sender

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/hhfr/hhfr/internal/httpmsg"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/pkg/soap"
)

// RequestHead makes the head of a request to a path, and maybe a query, with the Content-Type and
// SOAPAction that the message's version asks for, and further fields of the form `Name: value`. A
// field given replaces the one of the same name.
func RequestHead(target string, body []byte, action string, fields []string) ([]byte, error) {
	version := soap.Recognize(body).Version
	if version == soap.None {
		version = soap.V11
	}
	own, err := soap.RequestFields(version, action)
	if err != nil {
		return nil, err
	}
	given, err := ParseFields(fields)
	if err != nil {
		return nil, err
	}
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return nil, err
	}
	header := http.Header{} // not by Add: names keep their case
	replaced := map[string]bool{}
	for _, f := range given {
		header[f.Name] = append(header[f.Name], f.Value)
		replaced[strings.ToLower(f.Name)] = true
	}
	for _, f := range own {
		if !replaced[strings.ToLower(f.Name)] {
			header[f.Name] = []string{f.Value}
		}
	}
	return httpmsg.RequestHead(&http.Request{Method: http.MethodPost, URL: u, Header: header})
}

// ParseFields reads HTTP fields of the form `Name: value`.
func ParseFields(fields []string) ([]soap.Field, error) {
	var given []soap.Field
	for _, f := range fields {
		name, value, ok := strings.Cut(f, ":")
		if !ok {
			return nil, fmt.Errorf("field %q is not of the form Name: value", f)
		}
		field := soap.Field{Name: strings.TrimSpace(name), Value: strings.TrimSpace(value)}
		if _, err := http1.AppendField(nil, field.Name, field.Value); err != nil {
			return nil, err
		}
		switch strings.ToLower(field.Name) {
		case "host", "content-length", "transfer-encoding", "connection":
			return nil, fmt.Errorf("%s is made by HTTP itself, from the URL and the message", field.Name)
		}
		given = append(given, field)
	}
	return given, nil
}
