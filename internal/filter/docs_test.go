package filter_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/internal/filter"
	"github.com/hhfr/hhfr/internal/shared"
)

// The page has each field, and what it is compared by.
func TestFieldsAreOnThePage(t *testing.T) {
	page := string(shared.Read(t, filepath.Join("..", "..", "docs", "inspector.md")))
	for _, f := range filter.Fields() {
		by := "alone"
		for _, c := range []struct{ value, by string }{
			{`< 1`, "`==` `!=` `<` `<=` `>` `>=`"}, {`< 1s`, "`==` `!=` `<` `<=` `>` `>=`"},
			{`< 2026-01-02T15:04:05Z`, "`==` `!=` `<` `<=` `>` `>=`"}, {`== :1`, "`==` `!=`"},
			{`~ "x"`, "`==` `!=` `~` `!~`"},
		} {
			if _, err := filter.Parse(f[0] + c.value); err == nil {
				by = c.by
			}
		}
		assert.Contains(t, page, fmt.Sprintf("| `%s` | %s | %s |\n", f[0], f[1], by))
	}
}
