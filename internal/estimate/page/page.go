// Package page writes an estimate as a page for browsers, which needs nothing beside it.
package page

import (
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/hhfr/hhfr/internal/estimate"
)

// Content is what a page shows.
type Content struct {
	Files      []string         `json:"files"`
	Report     *estimate.Report `json:"report"`
	PricePerMB float64          `json:"price"`
}

// assets are the page itself.
//
//go:embed assets
var assets embed.FS

// Write writes the page. What comes from captures is in it as JSON only, which encoding/json writes
// such that it cannot end the script that it stands in; the script shows it as text. html/template
// would do for more, but with it in the program the linker keeps every exported method of every
// type: 3 MB.
func Write(w io.Writer, c Content) error {
	data, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	_, err = strings.NewReplacer(
		"@style@", text("page.css"),
		"@data@", string(data),
		"@script@", text("page.js"),
	).WriteString(w, text("page.html"))
	return err
}

// text returns an asset.
func text(name string) string {
	b, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // it is embedded
	}
	return string(b)
}
