package soapjms

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/Azure/go-amqp"

	"github.com/hhfr/hhfr/pkg/soap"
)

// maxMessage is how long a SOAP message may be, in bytes: one of AMQP is in memory as a whole.
const maxMessage = 64 << 20

// Properties of messages (section 2.2).
const (
	propRequestURI      = "SOAPJMS_requestURI"
	propBindingVersion  = "SOAPJMS_bindingVersion"
	propSOAPAction      = "SOAPJMS_soapAction"
	propTargetService   = "SOAPJMS_targetService"
	propContentType     = "SOAPJMS_contentType"
	propContentEncoding = "SOAPJMS_contentEncoding"
	propIsFault         = "SOAPJMS_isFault"

	bindingVersion = "1.0"
)

// What messages and destinations of JMS are on AMQP, in annotations.
const (
	annotationClass   = "x-opt-jms-msg-type"
	annotationTo      = "x-opt-jms-dest"
	annotationReplyTo = "x-opt-jms-reply-to"

	classBytes, classText = int8(3), int8(5)

	destinationQueue, destinationTemporary = int8(0), int8(2)
)

// pack makes a message of a class, with a body and properties.
func pack(class int8, body []byte, properties map[string]any) *amqp.Message {
	m := &amqp.Message{
		Annotations:           amqp.Annotations{annotationClass: class, annotationTo: destinationQueue},
		Header:                &amqp.MessageHeader{Priority: defaultPriority},
		Properties:            &amqp.MessageProperties{},
		ApplicationProperties: properties,
	}
	properties[propBindingVersion] = bindingVersion
	if class == classText {
		m.Value = string(body)
		return m
	}
	m.Data = [][]byte{body}
	binary := "application/octet-stream"
	m.Properties.ContentType = &binary
	return m
}

// request is that of HTTP as a message to a queue.
func (a *Address) request(r *http.Request, body []byte) *amqp.Message {
	contentType := r.Header.Get("Content-Type")
	properties := map[string]any{propRequestURI: a.RequestURI(), propContentType: contentType}
	action := soap.ParseContentType(contentType).Action
	if action == "" {
		action = soap.ParseAction(r.Header.Get("SOAPAction"))
	}
	for name, value := range map[string]string{
		propSOAPAction: action, propTargetService: a.Service, propContentEncoding: r.Header.Get("Content-Encoding"),
	} {
		if value != "" {
			properties[name] = value
		}
	}
	m := pack(classBytes, body, properties)
	m.Header.Durable, m.Header.Priority, m.Header.TTL = !a.Transient, a.Priority, a.TimeToLive
	m.Properties.To = &a.Queue
	return m
}

// replyTo has the reply to a message come to a queue.
func replyTo(m *amqp.Message, queue string, temporary bool) {
	m.Properties.ReplyTo = &queue
	m.Annotations[annotationReplyTo] = destinationQueue
	if temporary {
		m.Annotations[annotationReplyTo] = destinationTemporary
	}
}

// response is a reply as one of HTTP.
func response(m *amqp.Message, r *http.Request) (*http.Response, error) {
	body, class, err := bodyOf(m)
	contentType := text(m, propContentType)
	bare, noSOAP := m.ApplicationProperties[propStatus].(int32)
	if err == nil && contentType == "" && !noSOAP {
		err = errors.New("it has no property " + propContentType)
	}
	if err != nil {
		return nil, &Error{Code: Malformed, Err: err}
	}
	status := http.StatusOK
	if failed, _ := m.ApplicationProperties[propIsFault].(bool); failed || soap.IsFault(body) {
		status = http.StatusInternalServerError
	}
	head := http.Header{"Content-Type": {charset(contentType, class)}}
	if noSOAP && bare >= http.StatusOK && bare <= 599 {
		status, head = int(bare), http.Header{}
	}
	if encoding := text(m, propContentEncoding); encoding != "" {
		head.Set("Content-Encoding", encoding)
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: head, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}, nil
}

// asked is a request as a consumer has it.
type asked struct {
	*http.Request
	class   int8
	version soap.Version
	told    bool // its client wants to hear also that there is no reply
}

// read makes a request of a message; its fault is what the client did wrong (section 2.8), in the
// version of SOAP that the message has, as far as that is known.
func read(m *amqp.Message, queue string) (a asked, wrong *soap.Fault) {
	body, class, err := bodyOf(m)
	if err != nil {
		return a, wrongly("unsupportedJMSMessageFormat", "%v", err)
	}
	contentType := text(m, propContentType)
	media := soap.ParseContentType(contentType)
	a.class, a.version = class, media.Version()
	uri, action, encoding := text(m, propRequestURI), text(m, propSOAPAction), text(m, propContentEncoding)
	_, query, _ := strings.Cut(uri, "?")
	parameters, malformed := url.ParseQuery(query)
	found := soap.Recognize(body).Version
	switch version, given := m.ApplicationProperties[propBindingVersion]; {
	case given && version != bindingVersion:
		return a, wrongly("unrecognizedBindingVersion", "the version of the binding is %s, not %v", bindingVersion,
			version)
	case contentType == "":
		return a, wrongly("missingContentType", "the request has no property %s", propContentType)
	case uri == "":
		return a, wrongly("missingRequestURI", "the request has no property %s", propRequestURI)
	case len(uri) < 4 || !strings.EqualFold(uri[:4], "jms:") || malformed != nil:
		return a, wrongly("malformedRequestURI", "%q is no address of JMS", uri)
	case parameters.Has("targetService"):
		return a, wrongly("targetServiceNotAllowedInRequestURI", "the service is named by the property %s alone",
			propTargetService)
	case encoding != "" && encoding != "gzip":
		return a, wrongly("contentEncodingNotSupported", "bodies are compressed by gzip or not at all, not by %q",
			encoding)
	case media.Action != "" && action != "" && media.Action != action:
		return a, wrongly("mismatchedSoapAction", "the action is %q in the content type and %q beside it", media.Action,
			action)
	case encoding == "" && found != soap.None && a.version != soap.None && found != a.version:
		return a, wrongly("contentTypeMismatch", "the body is no message of %q", media.Type)
	}
	service := text(m, propTargetService)
	if service == "" {
		service = queue
	}
	a.Request, err = http.NewRequest(http.MethodPost, at(service).String(), bytes.NewReader(body))
	if err != nil {
		return a, wrongly("", "the service %q: %v", service, err)
	}
	a.Header.Set("Content-Type", charset(contentType, class))
	if a.version == soap.V11 {
		a.Header.Set("SOAPAction", `"`+action+`"`)
	}
	if encoding != "" {
		a.Header.Set("Content-Encoding", encoding)
	}
	return a, nil
}

// at is the URL of a service, which is named by its path, with a query or without.
func at(service string) *url.URL {
	path := "/" + strings.TrimPrefix(service, "/")
	to := &url.URL{Scheme: "http", Host: "queue", Path: path}
	if u, err := url.ParseRequestURI(path); err == nil && u.Host == "" {
		to.Path, to.RawPath, to.RawQuery = u.Path, u.RawPath, u.RawQuery
	}
	return to
}

// wrongly is a fault of the client; subcode is of SOAP over JMS, or empty.
func wrongly(subcode, format string, args ...any) *soap.Fault {
	f := &soap.Fault{Code: soap.Client, Reason: fmt.Sprintf(format, args...)}
	if subcode != "" {
		f.Subcode, f.SubcodeSpace = subcode, namespace
	}
	return f
}

// namespace has the codes of faults, and is the transport in descriptions (section 3).
const namespace = "http://www.w3.org/2010/soapjms/"

// answer makes the message that replies to another one, as text if that was.
func answer(to *amqp.Message, class int8, contentType, encoding string, body []byte, failed bool) *amqp.Message {
	properties := map[string]any{propContentType: contentType, propIsFault: failed}
	if encoding != "" {
		properties[propContentEncoding] = encoding
		class = classBytes
	}
	m := pack(class, body, properties)
	addressed(m, to)
	return m
}

// addressed has a message be the reply to another one.
func addressed(m, to *amqp.Message) {
	if uri := text(to, propRequestURI); uri != "" {
		m.ApplicationProperties[propRequestURI] = uri // CXF takes no reply without it
	}
	if h := to.Header; h != nil {
		m.Header.Durable, m.Header.Priority = h.Durable, h.Priority
	}
	asking := to.Properties
	m.Properties.To = asking.ReplyTo
	if m.Properties.CorrelationID = asking.CorrelationID; m.Properties.CorrelationID == nil {
		m.Properties.CorrelationID = asking.MessageID
	}
	if kind, given := to.Annotations[annotationReplyTo]; given {
		m.Annotations[annotationTo] = kind
	}
}

// bodyOf is what a message of bytes or of text carries. Others are an error.
func bodyOf(m *amqp.Message) (body []byte, class int8, err error) {
	switch v := m.Value.(type) {
	case string:
		body, class = []byte(v), classText
	case []byte:
		body, class = v, classBytes
	case nil:
		body, class = bytes.Join(m.Data, nil), classBytes
	default:
		return nil, 0, fmt.Errorf("the body is of type %T: SOAP is in messages of text or of bytes", v)
	}
	given, _ := m.Annotations[annotationClass].(int8)
	switch {
	case given != 0 && given != classBytes && given != classText || len(m.Sequence) > 0:
		return nil, 0, fmt.Errorf("a message of JMS of type %d: SOAP is in messages of text or of bytes", given)
	case len(body) > maxMessage:
		return nil, 0, tooLarge(len(body))
	case given == classText:
		class = classText
	}
	return body, class, nil
}

func tooLarge(size int) error {
	return &Error{Code: TooLarge, Err: fmt.Errorf("%d bytes, and a queue takes at most %d: send it over a stream", size,
		maxMessage)}
}

// text is a property that is one; empty: there is none.
func text(m *amqp.Message, property string) string {
	s, _ := m.ApplicationProperties[property].(string)
	return s
}

// charset has the content type of a text say what the text is here: its own charset does not count
// (section 2.4).
func charset(contentType string, class int8) string {
	kind, parameters, err := mime.ParseMediaType(contentType)
	if class != classText || err != nil || parameters["charset"] == "" {
		return contentType
	}
	parameters["charset"] = "utf-8"
	return mime.FormatMediaType(kind, parameters)
}
