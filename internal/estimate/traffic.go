package estimate

// traffic are bytes with the headers of their packets.
type traffic struct{ Bytes, Packets int64 }

func (t *traffic) add(o traffic) { t.Bytes, t.Packets = t.Bytes+o.Bytes, t.Packets+o.Packets }
