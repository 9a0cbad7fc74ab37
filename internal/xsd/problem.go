package xsd

import "fmt"

// Problem is something in a description that is wrong, missing or not supported, and where.
type Problem struct {
	Place Position
	What  string
}

// Error implements error.
func (p *Problem) Error() string { return fmt.Sprintf("%s: %s", p.Place, p.What) }
