package http1

// Trailer is the trailer section as received, its empty line included; nil if the body is not
// chunked or its trailer has not arrived yet.
func (b *Body) Trailer() []byte { return b.trailer }

// AppendRaw appends the raw body to dst: the entity with the recorded framing around it.
func AppendRaw(dst, entity []byte, parts []FramingPart) []byte {
	at := int64(0)
	for _, p := range parts {
		to := min(max(p.At, at), int64(len(entity)))
		dst = append(dst, entity[at:to]...)
		dst = append(dst, p.Octets...)
		at = to
	}
	return append(dst, entity[at:]...)
}

// Reason is the reason phrase of a reply as received; nil for a request.
func (h *Head) Reason() []byte {
	if !h.reply {
		return nil
	}
	return h.parts[2]
}
