package xsd

// Element returns a global element with all that it consists of; nil if there is none of the name.
func (s *Set) Element(name QName) *ElementDecl {
	e := s.element(name)
	s.fill()
	return e
}

// Type returns a global or built-in type with all that it consists of; nil if there is none of the
// name.
func (s *Set) Type(name QName) *TypeDef {
	t := s.typ(name)
	s.fill()
	return t
}
