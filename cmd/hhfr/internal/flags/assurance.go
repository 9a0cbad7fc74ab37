package flags

import (
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/pkg/wsrm"
	"github.com/hhfr/hhfr/pkg/wsrm/soaprm"
)

// Assurances are the values of --assurance.
func Assurances() (names []string) {
	for a := wsrm.AtMostOnce; a <= wsrm.ExactlyOnce; a++ {
		names = append(names, a.String())
	}
	return names
}

// ParseAssurance reads a value of --assurance; 0 if it is none.
func ParseAssurance(name string) wsrm.Assurance {
	for a := wsrm.AtMostOnce; a <= wsrm.ExactlyOnce; a++ {
		if a.String() == name {
			return a
		}
	}
	return 0
}

// ReliableVersions reads --soap-rm of a server; empty: none.
func ReliableVersions(value string) ([]soaprm.Protocol, error) {
	if value == "" {
		return nil, nil
	}
	if value == "all" {
		return []soaprm.Protocol{soaprm.V10, soaprm.V11}, nil
	}
	v, ok := soaprm.ParseProtocol(value)
	if !ok {
		return nil, exit.Usagef("", "--soap-rm is 1.0, 1.1, 1.2 or all, not %s", value)
	}
	return []soaprm.Protocol{v}, nil
}
