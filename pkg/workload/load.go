package workload

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Load reads the messages (*.xml) of a folder in the order of their names. A folder without any is
// an error: a goal measured on nothing would always be met.
func Load(dir string) ([][]byte, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.xml"))
	if err != nil {
		return nil, fmt.Errorf("list messages: %w", err)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no messages (*.xml) in %q", dir)
	}
	slices.Sort(names)
	messages := make([][]byte, len(names))
	for i, name := range names {
		if messages[i], err = os.ReadFile(name); err != nil {
			return nil, fmt.Errorf("load messages: %w", err)
		}
	}
	return messages, nil
}
