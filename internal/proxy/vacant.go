package proxy

import (
	"net"
	"net/netip"
	"slices"
)

// client is who a connection is of, if connections from its address are of one client.
func (u *upstream) client(conn net.Conn) netip.Addr {
	if !u.cfg.PerAddress {
		return netip.Addr{}
	}
	from, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return from.Addr().Unmap()
}

// maxKept bounds the lanes that are kept for clients that may come again: another client gets the
// oldest of them before there are more lanes.
const maxKept = 1024

// vacancy is a lane without a client.
type vacancy struct {
	number uint64
	// owner is the client that goes on with the memory of the lane when it comes again; the zero
	// address: nobody does.
	owner netip.Addr
	// told: the far end knows that the connection of the lane is gone.
	told bool
}

// ending is what the far end is told before the first call of a client; none: nothing.
func (v vacancy) ending(client netip.Addr) messageKind {
	switch {
	case v.told && v.owner == client, v.told && !v.owner.IsValid():
		return none
	case v.owner == client:
		return endOf(client)
	}
	return leave
}

// endOf is how the connection of a client ends.
func endOf(client netip.Addr) messageKind {
	if client.IsValid() {
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

// own takes a lane that a client had before.
func (v *vacant) own(client netip.Addr) (vacancy, bool) {
	for _, list := range [...]*[]vacancy{&v.left, &v.kept} {
		i := slices.IndexFunc(*list, func(one vacancy) bool { return one.owner == client })
		if i >= 0 {
			one := (*list)[i]
			*list = slices.Delete(*list, i, i+1)
			return one, true
		}
	}
	return vacancy{}, false
}

func pop(list *[]vacancy) vacancy {
	last := len(*list) - 1
	v := (*list)[last]
	*list = (*list)[:last]
	return v
}
