package wire

// Rest makes the memories of lanes small on which nothing came since the last call; it reports
// whether others are left.
func (d *Decoder) Rest() (left bool) {
	for _, r := range d.lanes.memories {
		if r.used {
			r.used, left = false, true
		} else {
			r.memory.fold()
		}
	}
	return left
}
