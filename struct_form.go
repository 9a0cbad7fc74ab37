package hhfr

import (
	"bytes"
	"context"
	"encoding"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/hhfr/hhfr/pkg/soap"
)

type Binding[T any] struct{}

func Bind[T any]() (*Binding[T], error) { return &Binding[T]{}, nil }

func (b *Binding[T]) Append(dst []byte, v *T) ([]byte, error) {
	var w strings.Builder
	t := reflect.ValueOf(v).Elem()
	name, _ := fieldsOf(t.Type())
	f, _ := t.Type().FieldByName("XMLName")
	writeElement(&w, name, t, "", f.Tag.Get("soap") == "unqualified")
	return append(dst, w.String()...), nil
}

func (b *Binding[T]) Read(content []byte, v *T) error {
	return readStruct([]byte("<Body>"+string(content)+"</Body>"), v)
}

type Operation[Req, Res any] struct {
	action  string
	version soap.Version
}

func NewOperation[Req, Res any](action string, version soap.Version) (*Operation[Req, Res], error) {
	return &Operation[Req, Res]{action, version}, nil
}

func (o *Operation[Req, Res]) Request(v *Req) (*Request, error) {
	text, err := (&Binding[Req]{}).Append(nil, v)
	if err == nil {
		text, err = soap.Wrap(max(o.version, soap.V11), text)
	}
	return &Request{Action: o.action, Body: Body(text)}, err
}

func Invoke[Req, Res any](ctx context.Context, c *Client, op *Operation[Req, Res], req *Req) (*Res, error) {
	m, err := op.Request(req)
	if err != nil {
		return nil, err
	}
	reply, err := c.Call(ctx, m)
	if err != nil {
		return nil, err
	}
	if f := reply.Fault(); f != nil {
		_ = reply.Body.Close()
		return nil, &Error{Code: Refused, Err: f}
	}
	body, err := reply.ReadAll()
	if err != nil {
		return nil, err
	}
	res := new(Res)
	return res, readStruct(body, res)
}

func (op *Operation[Req, Res]) Handler(serve func(context.Context, *Req) (*Res, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		v := soap.Recognize(body).Version
		var text []byte
		if err == nil {
			req := new(Req)
			err = readStruct(body, req)
			var res *Res
			if err == nil {
				res, err = serve(r.Context(), req)
			}
			if err == nil && res == nil {
				w.WriteHeader(202)
				return
			}
			if err == nil {
				text, err = (&Binding[Res]{}).Append(nil, res)
				text, _ = soap.Wrap(v, text)
			}
		}
		status := http.StatusOK
		if err != nil {
			f := &soap.Fault{Code: soap.Server, Reason: err.Error()}
			var of *soap.Fault
			if errors.As(err, &of) {
				f = of
			}
			status = soap.FaultStatus(v, f.Code)
			text, _ = soap.BuildFault(v, *f)
		}
		contentType, _ := soap.ContentType(v, "")
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = w.Write(text)
	})
}

// structField is a field of a struct, by its tag.
type structField struct {
	index            int
	name             xml.Name
	attr, text, omit bool
	null             bool
}

func fieldsOf(t reflect.Type) (name xml.Name, list []structField) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("xml")
		space, rest, found := strings.Cut(tag, " ")
		if !found {
			space, rest = "", tag
		}
		options := strings.Split(rest, ",")
		one := structField{index: i, name: xml.Name{Space: space, Local: options[0]}, null: f.Tag.Get("soap") == "nil"}
		if f.Name == "XMLName" {
			name = one.name
			continue
		}
		for _, o := range options[1:] {
			switch o {
			case "attr":
				one.attr = true
			case "chardata":
				one.text = true
			case "omitempty":
				one.omit = true
			}
		}
		list = append(list, one)
	}
	return name, list
}

const xsiSpace = "http://www.w3.org/2001/XMLSchema-instance"

func writeElement(b *strings.Builder, name xml.Name, v reflect.Value, inside string, unqualified bool) {
	if name.Space == "" && !unqualified {
		name.Space = inside
	}
	b.WriteString("<" + name.Local)
	if name.Space != inside {
		b.WriteString(` xmlns="`)
		_ = xml.EscapeText(b, []byte(name.Space))
		b.WriteString(`"`)
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			b.WriteString(` xmlns:xsi="` + xsiSpace + `" xsi:nil="true"/>`)
			return
		}
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		b.WriteString(">" + escaped(textOf(v)) + "</" + name.Local + ">")
		return
	}
	_, fields := fieldsOf(v.Type())
	for _, f := range fields {
		x := v.Field(f.index)
		if !f.attr || f.omit && x.IsZero() {
			continue
		}
		attr := f.name.Local
		switch f.name.Space {
		case "":
		case "http://www.w3.org/XML/1998/namespace":
			attr = "xml:" + attr
		default:
			b.WriteString(fmt.Sprintf(` xmlns:a%d="%s"`, f.index, escaped(f.name.Space)))
			attr = fmt.Sprintf("a%d:%s", f.index, attr)
		}
		b.WriteString(" " + attr + `="` + escaped(textOf(reflect.Indirect(x))) + `"`)
	}
	b.WriteString(">")
	for _, f := range fields {
		x := v.Field(f.index)
		switch {
		case f.attr:
		case f.text:
			b.WriteString(escaped(textOf(x)))
		case x.Kind() == reflect.Slice && x.Type().Elem().Kind() != reflect.Uint8:
			for i := range x.Len() {
				writeElement(b, f.name, x.Index(i), name.Space, unqualified)
			}
		case f.omit && x.IsZero():
		default:
			writeElement(b, f.name, x, name.Space, unqualified)
		}
	}
	b.WriteString("</" + name.Local + ">")
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text))
	return b.String()
}

func textOf(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Int:
		return strconv.FormatInt(v.Int(), 10)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint:
		return strconv.FormatUint(v.Uint(), 10)
	case reflect.Float32, reflect.Float64:
		switch f := v.Float(); {
		case math.IsInf(f, 1):
			return "INF"
		case math.IsInf(f, -1):
			return "-INF"
		default:
			return strconv.FormatFloat(f, 'g', -1, v.Type().Bits())
		}
	case reflect.Slice:
		return base64.StdEncoding.EncodeToString(v.Bytes())
	case reflect.String:
		return v.String()
	}
	if t, ok := v.Interface().(time.Time); ok {
		return t.Format(time.RFC3339Nano)
	}
	return ""
}

func readStruct(envelope []byte, v any) error {
	dec := xml.NewDecoder(bytes.NewReader(envelope))
	inside := false
	for {
		t, err := dec.Token()
		if err != nil {
			return fmt.Errorf("a message without a Body: %w", err)
		}
		start, ok := t.(xml.StartElement)
		if end, ends := t.(xml.EndElement); ends && inside && end.Name.Local == "Body" {
			return nil
		}
		switch {
		case !ok:
		case inside:
			into := reflect.ValueOf(v).Elem()
			if name, _ := fieldsOf(into.Type()); name.Local != "" && name != start.Name {
				return fmt.Errorf("%v in Body, where %v is expected", start.Name, name)
			}
			return readElement(dec, start, into)
		case start.Name.Local == "Body":
			inside = true
		}
	}
}

func readElement(dec *xml.Decoder, start xml.StartElement, v reflect.Value) error {
	if v.Kind() == reflect.Pointer {
		for _, a := range start.Attr {
			if a.Name.Space == xsiSpace && a.Name.Local == "nil" && (a.Value == "true" || a.Value == "1") {
				return dec.Skip()
			}
		}
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	var fields []structField
	if v.Kind() == reflect.Struct {
		_, fields = fieldsOf(v.Type())
	}
	for _, a := range start.Attr {
		for _, f := range fields {
			if f.attr && f.name == a.Name {
				if err := setText(v.Field(f.index), a.Value); err != nil {
					return fmt.Errorf("%s/@%s: %w", start.Name.Local, a.Name.Local, err)
				}
			}
		}
	}
	var text strings.Builder
	for {
		t, err := dec.Token()
		if err != nil {
			return err
		}
		switch t := t.(type) {
		case xml.CharData:
			text.Write(t)
		case xml.StartElement:
			if err := readChild(dec, t, v, fields); err != nil {
				return err
			}
		case xml.EndElement:
			if v.Kind() != reflect.Struct {
				return setText(v, text.String())
			}
			for _, f := range fields {
				if f.text {
					return setText(v.Field(f.index), text.String())
				}
			}
			return nil
		}
	}
}

func readChild(dec *xml.Decoder, start xml.StartElement, v reflect.Value, fields []structField) error {
	for _, f := range fields {
		if f.attr || f.text || f.name.Local != start.Name.Local || f.name.Space != "" && f.name.Space != start.Name.Space {
			continue
		}
		x := v.Field(f.index)
		if x.Kind() == reflect.Slice && x.Type().Elem().Kind() != reflect.Uint8 {
			x.Set(reflect.Append(x, reflect.Zero(x.Type().Elem())))
			x = x.Index(x.Len() - 1)
		}
		return readElement(dec, start, x)
	}
	return dec.Skip()
}

func setText(v reflect.Value, text string) (err error) {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	word := strings.TrimSpace(text)
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(word == "true" || word == "1")
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Int:
		var n int64
		n, err = strconv.ParseInt(word, 10, v.Type().Bits())
		v.SetInt(n)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint:
		var n uint64
		n, err = strconv.ParseUint(strings.TrimPrefix(word, "+"), 10, v.Type().Bits())
		v.SetUint(n)
	case reflect.Float32, reflect.Float64:
		var f float64
		f, err = strconv.ParseFloat(word, v.Type().Bits())
		v.SetFloat(f)
	case reflect.Slice:
		var data []byte
		data, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
		v.SetBytes(data)
	case reflect.String:
		v.SetString(text)
	default:
		if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
			err = u.UnmarshalText([]byte(text))
		}
	}
	return err
}
