package bin

// FieldForm is how the bytes of a field are read.
type FieldForm uint8

const (
	// Uint is an unsigned LEB128 integer.
	Uint FieldForm = iota + 1
	// Byte is one byte.
	Byte
	// Raw are bytes that mean no number or text.
	Raw
	// Counted is a length, and as many raw bytes.
	Counted
	// CountedText is a length, and as many bytes of text.
	CountedText
)

// NamedField is a field that a [Cursor] came to.
type NamedField struct {
	Name string
	Form FieldForm
	// From is the offset of its first byte, base included. It ends where the next one begins.
	From int64
}

// Watch has a cursor add to fields what it reads, as far as its reader names it by [Cursor.Name].
func (c *Cursor) Watch(fields *[]NamedField) { c.names = fields }

// Name says which field is read next. It does nothing for a cursor that nobody watches.
func (c *Cursor) Name(field string, form FieldForm) {
	if c.names != nil && c.err == nil {
		*c.names = append(*c.names, NamedField{field, form, c.At()})
	}
}
