package wire

// Rest makes the memories of lanes small on which nothing came since the last call; it reports
// whether others are left. If not, it gives back what can be had again.
func (d *Decoder) Rest() (left bool) {
	for _, r := range d.lanes.memories.All {
		if r.used {
			r.used, left = false, true
		} else {
			r.memory.fold()
			r.window.Rest()
		}
	}
	if !left {
		d.events, d.spare, d.current = nil, nil, nil
	}
	return left
}
