package wire

// Texts reports whether a part of the message found no number for its shape, and went as text.
func (m *Outgoing) Texts() bool { return m.texts }
