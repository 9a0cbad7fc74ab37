package wsdl

// Named are the operations of a name, in the order of the description; binding limits them to the
// binding or port of a name, and may be empty.
func (d *ServiceDescription) Named(name, binding string) (list []*Operation) {
	for _, o := range d.Operations {
		if o.Name == name && (binding == "" || o.Binding.Local == binding || d.hasPort(binding, o)) {
			list = append(list, o)
		}
	}
	return list
}

// hasPort reports whether a port of a name has the operation.
func (d *ServiceDescription) hasPort(name string, o *Operation) bool {
	for _, p := range d.Ports {
		if p.Name == name && p.Binding == o.Binding {
			return true
		}
	}
	return false
}

// LocationOf is the address of the first port that has an operation; empty: none has.
func (d *ServiceDescription) LocationOf(o *Operation) string {
	for _, p := range d.Ports {
		if p.Binding == o.Binding && p.Location != "" {
			return p.Location
		}
	}
	return ""
}
