package real

import (
	"bufio"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The connections and the content of a cell.
const (
	Kept   = "kept"
	Closed = "closed"
	// Readings are numbers, names of a list and truth values, each kind in a field of its own;
	// Mixed has them, times and decimals in the same field; New is random text.
	Readings = "readings"
	Mixed    = "mixed"
	New      = "new"
)

var (
	clients = []string{"requests", "zeep", "node-soap", "urlconnection", "cxf", "gsoap", "curl"}
	servers = []string{"http.server", "node-soap", "cxf", "gsoap", "serve"}
	counts  = []string{"1", "5", "20", "200"}
)

// Cell is a conversation of a client with a server.
type Cell struct {
	Client      string `json:"client"`
	Server      string `json:"server"`
	Connections string `json:"connections"`
	Calls       int    `json:"calls"`
	Content     string `json:"content"`
}

func (c Cell) String() string {
	return fmt.Sprintf("%s to %s, %s, %d calls, %s", c.Client, c.Server, c.Connections, c.Calls, c.Content)
}

//go:embed cells.txt
var cellsText string

// Cells are those that the list names, each once: all, those for ci, or those whose names have this
// in them.
func Cells(which string) ([]Cell, error) {
	list, err := parseCells(cellsText, which == "ci")
	if err != nil {
		return nil, err
	}
	if which != "ci" && which != "all" {
		list = slices.DeleteFunc(list, func(c Cell) bool { return !strings.Contains(c.String(), which) })
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no cell %q", which)
	}
	return list, nil
}

func parseCells(text string, short bool) (list []Cell, err error) {
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		ci := len(words) == 6 && words[5] == "ci"
		if len(words) != 5 && !ci {
			return nil, fmt.Errorf("line %d: client, server, connections, calls, content, and ci or nothing", n)
		}
		if short && !ci {
			continue
		}
		made, err := cellsOf(words)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		for _, c := range made {
			if !slices.Contains(list, c) {
				list = append(list, c)
			}
		}
	}
	return list, lines.Err()
}

// cellsOf has a line's cells. A client meets no server of its own make where all are meant.
func cellsOf(words []string) (list []Cell, err error) {
	var choices [5][]string
	for i, known := range [][]string{clients, servers, {Kept, Closed}, counts, {Readings, Mixed, New}} {
		switch choices[i] = known; {
		case words[i] == "*":
		case slices.Contains(known, words[i]):
			choices[i] = words[i : i+1]
		default:
			return nil, fmt.Errorf("%q is not one of %s", words[i], strings.Join(known, ", "))
		}
	}
	for _, client := range choices[0] {
		for _, server := range choices[1] {
			if client == server && words[1] == "*" {
				continue
			}
			for _, connections := range choices[2] {
				for _, count := range choices[3] {
					for _, content := range choices[4] {
						calls, err := strconv.Atoi(count)
						if err != nil {
							return nil, err
						}
						list = append(list, Cell{client, server, connections, calls, content})
					}
				}
			}
		}
	}
	return list, nil
}
