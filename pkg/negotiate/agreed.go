package negotiate

import (
	"slices"
	"strings"

	"github.com/hhfr/hhfr/pkg/soap"
)

// NoRoom reports whether the peer would have agreed, but had no space for another session. That is
// not remembered, as it may pass.
func (a *Agreed) NoRoom() bool {
	return slices.ContainsFunc(a.Refused, func(d Declined) bool { return a.Answer == nil && d.Item == Busy[0].Item })
}

// Ignored names elements that were ignored: those of the offer by the peer, and those of the answer
// by this end.
func (a *Agreed) Ignored() (offer, answer []soap.Name) {
	if a.Answer == nil {
		return nil, nil
	}
	return a.Answer.Ignored, a.Answer.Unknown
}

// Modes returns all modes.
func Modes() []Mode { return []Mode{Auto, FirstCall, Met, Declared, Explicit} }

// ParseMode reads the name of a mode. Errors: BadConfig.
func ParseMode(name string) (Mode, error) {
	if m := Mode(name); slices.Contains(Modes(), m) {
		return m, nil
	}
	var names []string
	for _, m := range Modes() {
		names = append(names, string(m))
	}
	return "", BadConfigf("%q is no mode; there are %s", name, strings.Join(names, ", "))
}
