package capture

// opens notes that a message has begun, and more of it follows.
func (d *direction) opens(in *incoming) {
	all := &d.r.open
	in.open = true
	all.count++
	if d.open++; d.open == 1 {
		if all.in == nil {
			all.in = map[*direction]struct{}{}
		}
		all.in[d] = struct{}{}
	}
}

// ends notes that nothing more of a message comes.
func (d *direction) ends(in *incoming) {
	if !in.open {
		return
	}
	in.open = false
	d.r.open.count--
	if d.open--; d.open == 0 {
		delete(d.r.open.in, d)
	}
}

// bound has the direction with the most open messages lose them if there are too many in all.
func (r *Reader) bound() {
	if r.open.count <= maxOpen {
		return
	}
	var most *direction
	for d := range r.open.in {
		if most == nil || d.open > most.open {
			most = d
		}
	}
	most.abandon()
}
