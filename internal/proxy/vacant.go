package proxy

import (
	"slices"
	"time"

	"github.com/hhfr/hhfr/internal/principal"
)

// maxKept bounds the lanes that are kept for clients that may come again: another client gets the
// oldest of them before there are more lanes.
const maxKept = 1024

// vacancy is a lane without a client.
type vacancy struct {
	number uint64
	// owner is whose next connection goes on with the memory of the lane; the zero key: nobody's
	// does.
	owner principal.Key
	// told: the far end knows that the connection of the lane is gone.
	told  bool
	since time.Time // when it was kept
}

// ending is what the far end is told before the first call of a client; none: nothing.
func (v vacancy) ending(client principal.Key) messageKind {
	switch {
	case v.told && v.owner == client, v.told && !v.owner.IsShared():
		return none
	case v.owner == client:
		return endOf(client)
	}
	return leave
}

// endOf is how the connection of a client ends.
func endOf(client principal.Key) messageKind {
	if client.IsShared() {
		return hangUp
	}
	return leave
}

// vacant has the lanes without a client.
type vacant struct {
	free []vacancy // nobody's
	left []vacancy // the far end does not know that the connection is gone
	kept []vacancy // it does, and the owner may come again; the oldest first
}

// own takes the lane that a client had last.
func (v *vacant) own(client principal.Key) (vacancy, bool) {
	for _, list := range [...]*[]vacancy{&v.left, &v.kept} {
		for i, one := range slices.Backward(*list) {
			if one.owner == client {
				*list = slices.Delete(*list, i, i+1)
				return one, true
			}
		}
	}
	return vacancy{}, false
}

// has reports whether there is a lane that a client had last.
func (v *vacant) has(client principal.Key) bool {
	of := func(one vacancy) bool { return one.owner == client }
	return slices.ContainsFunc(v.left, of) || slices.ContainsFunc(v.kept, of)
}

// disown has nobody go on with the lanes that are chosen: the far end is to be told.
func (v *vacant) disown(chosen func(vacancy) bool) {
	for i := range v.left {
		if chosen(v.left[i]) {
			v.left[i].owner = principal.Key{}
		}
	}
	v.kept = slices.DeleteFunc(v.kept, func(one vacancy) bool {
		if !chosen(one) {
			return false
		}
		v.left = append(v.left, vacancy{number: one.number})
		return true
	})
}

func pop(list *[]vacancy) vacancy {
	last := len(*list) - 1
	v := (*list)[last]
	*list = (*list)[:last]
	return v
}
