package estimate

import (
	"slices"
)

// Ways are all of them, in the order of reports.
func Ways() []Way { return slices.Clone(names[:]) }
