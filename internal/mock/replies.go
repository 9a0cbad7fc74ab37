package mock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hhfr/hhfr/internal/envelope"
	"github.com/hhfr/hhfr/internal/values"
	"github.com/hhfr/hhfr/internal/wsdl"
)

// reply is what a file has: an envelope, or values.
type reply struct {
	text   []byte
	values *values.JSON
	fault  bool
}

// read reads the files of a folder, and checks them.
func (m *Mock) read(folder string) (map[string]reply, error) {
	if folder == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	all := map[string]reply{}
	var wrong []error
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		name := strings.TrimSuffix(e.Name(), ext)
		if e.IsDir() || ext != ".xml" && ext != ".json" {
			continue
		}
		file := filepath.Join(folder, e.Name())
		one, err := m.readReply(file, name, ext)
		switch _, twice := all[name]; {
		case err != nil:
			wrong = append(wrong, err)
		case twice:
			wrong = append(wrong, fmt.Errorf("%s: there is another reply of %s", file, name))
		default:
			all[name] = one
		}
	}
	if len(all) == 0 && len(wrong) == 0 {
		return nil, fmt.Errorf("%s has no OPERATION.xml and no OPERATION.json", folder)
	}
	return all, errors.Join(wrong...)
}

func (m *Mock) readReply(file, name, ext string) (one reply, err error) {
	ops := m.d.Named(name, "")
	switch {
	case len(ops) == 0:
		return one, fmt.Errorf("%s: the WSDL has no operation %s", file, name)
	case ops[0].Output == nil:
		return one, fmt.Errorf("%s: the operation %s has no reply", file, name)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return one, err
	}
	if ext == ".json" {
		if one.values, err = values.ParseJSON(file, text); err != nil {
			return one, err
		}
		// As hhfr call prints a fault.
		if fault := one.values.Get("Fault"); fault != nil && len(one.values.Members) == 1 {
			one.values, one.fault = fault, true
		}
		_, err = one.envelope(m.d, ops[0])
		return one, err
	}
	tree, err := envelope.Parse(file, "", text)
	if err != nil {
		return one, err
	}
	for _, misfit := range m.d.Check(tree.Root) {
		m.cfg.Log.Warn("reply not as described", "where", misfit.Place.String(), "what", misfit.What)
	}
	return reply{text: text, fault: tree.Fault}, nil
}

// envelope is the reply of an operation. An envelope in a file is as it is, for all bindings.
func (r reply) envelope(d *wsdl.ServiceDescription, op *wsdl.Operation) ([]byte, error) {
	if r.text != nil {
		return r.text, nil
	}
	of := op.Output.Contents()
	if r.fault {
		of = wsdl.FaultContents(op.SOAP, nil)
	}
	return values.New(d.Set(), of, op.SOAP).Write(r.values, "")
}
