package printing

import (
	"encoding/json"
	"io"
)

// JSON writes one line. Markup is not escaped, so that people can read it, too.
func JSON(w io.Writer, v any) error {
	e := json.NewEncoder(Escaping{w})
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
