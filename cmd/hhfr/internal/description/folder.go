package description

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
)

// In returns the description that a folder has: its WSDL, or, without one, its XML Schema.
// All other names are returned as they are. Error: the folder has none, or several.
func In(name string) (string, error) {
	if info, err := os.Stat(name); err != nil || !info.IsDir() {
		return name, nil //nolint:nilerr // whoever reads it says that
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return "", err
	}
	for _, ending := range []string{".wsdl", ".xsd"} {
		var found []string
		for _, e := range entries {
			if !e.IsDir() && strings.EqualFold(filepath.Ext(e.Name()), ending) {
				found = append(found, e.Name())
			}
		}
		switch len(found) {
		case 0:
		case 1:
			return filepath.Join(name, found[0]), nil
		default:
			return "", exit.Usagef("name the one that imports the others", "the folder %s has %d files *%s: %s", name,
				len(found), ending, strings.Join(found, ", "))
		}
	}
	return "", exit.Usagef("", "the folder %s has no *.wsdl and no *.xsd", name)
}
