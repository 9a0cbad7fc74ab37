package xsd

import "fmt"

// Problem is something in a description that is wrong, missing or not supported, and where.
type Problem struct {
	Place Position
	What  string
	// Kind is what is wrong, Name what that is about, and Component what of.
	Kind      ProblemKind
	Component string
	Name      QName
}

// ProblemKind is what is wrong, as far as descriptions in use are known to have it.
type ProblemKind uint8

// Kinds of problems.
const (
	// OtherProblem is any that is not listed here.
	OtherProblem ProblemKind = iota
	// NotDeclared: no document that was read declares the Component (an element, a type, a message)
	// of this Name.
	NotDeclared
	// NoPrefix: the prefix that is the local part of Name is not declared.
	NoPrefix
	// NoOperation: the portType of this Name has no operation Component.
	NoOperation
	// InItself: the Component of this Name contains itself.
	InItself
)

// Error implements error.
func (p *Problem) Error() string { return fmt.Sprintf("%s: %s", p.Place, p.What) }

// problemAt makes a problem.
func problemAt(at Position, format string, args ...any) *Problem {
	return &Problem{Place: at, What: fmt.Sprintf(format, args...)}
}

// Undeclared is the problem of a reference that nothing declares.
func Undeclared(at *DocumentNode, component string, name QName) *Problem {
	p := problemAt(at.Place, "%s %s is not declared", component, name)
	p.Kind, p.Component, p.Name = NotDeclared, component, name
	return p
}
