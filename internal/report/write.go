package report

import (
	"embed"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Write writes a report as text, html or markdown.
func Write(w io.Writer, format string, list []Section) error {
	switch format {
	case "html":
		return writeHTML(w, list)
	case "markdown":
		return writeMarkdown(w, list)
	}
	return writeText(w, list)
}

// writeText writes tables in columns. Pictures are for pages.
func writeText(w io.Writer, list []Section) error {
	out := &strings.Builder{}
	for _, s := range list {
		if s.Table == nil {
			continue
		}
		fmt.Fprintf(out, "%s\n%s\n", s.Title, strings.Repeat("-", utf8.RuneCountInString(s.Title)))
		if s.Text != "" {
			fmt.Fprintln(out, wrap(s.Text))
		}
		widths := make([]int, len(s.Table.Head))
		for _, row := range append([][]string{s.Table.Head}, s.Table.Rows...) {
			for i, cell := range row {
				widths[i] = max(widths[i], utf8.RuneCountInString(cell))
			}
		}
		for _, row := range append([][]string{s.Table.Head}, s.Table.Rows...) {
			line := ""
			for i, cell := range row {
				pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
				if isText(s.Table, i) {
					line += cell + pad + "  "
				} else {
					line += pad + cell + "  "
				}
			}
			fmt.Fprintln(out, strings.TrimRight(line, " "))
		}
		fmt.Fprintln(out)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// isText reports whether a column has anything that is no number.
func isText(g *Grid, column int) bool {
	return slices.ContainsFunc(g.Rows, func(row []string) bool { return !isNumber(row[column]) })
}

// isNumber reports whether a cell has only numbers and their units.
func isNumber(cell string) bool {
	for word := range strings.FieldsSeq(cell) {
		word = strings.Trim(word, "±%(),/+-*") // *: a mark
		if _, err := strconv.ParseFloat(word, 64); err != nil &&
			!slices.Contains([]string{"", "us", "ms", "s", "B", "times", "to"}, word) {
			return false
		}
	}
	return true
}

// wrap breaks a text into lines of 80 columns.
func wrap(text string) string {
	const columns = 80
	out, at := &strings.Builder{}, 0
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case at > 0 && at+1+n > columns:
			out.WriteString("\n")
			at = 0
		case at > 0:
			out.WriteString(" ")
			at++
		}
		out.WriteString(word)
		at += n
	}
	return out.String()
}

func writeMarkdown(w io.Writer, list []Section) error {
	out := &strings.Builder{}
	escape := strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;", "&", "&amp;")
	for _, s := range list {
		if s.Table == nil {
			continue
		}
		fmt.Fprintf(out, "## %s\n\n", escape.Replace(s.Title))
		if s.Text != "" {
			fmt.Fprintf(out, "%s\n\n", escape.Replace(s.Text))
		}
		line := func(cells []string) {
			for _, c := range cells {
				fmt.Fprintf(out, "| %s ", escape.Replace(c))
			}
			fmt.Fprintln(out, "|")
		}
		line(s.Table.Head)
		for i := range s.Table.Head {
			if isText(s.Table, i) {
				fmt.Fprint(out, "|---")
			} else {
				fmt.Fprint(out, "|---:")
			}
		}
		fmt.Fprintln(out, "|")
		for _, row := range s.Table.Rows {
			line(row)
		}
		fmt.Fprintln(out)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// WriteCSV writes what was measured, a row for each figure, for programs that make tables and
// pictures themselves.
func WriteCSV(w io.Writer, runs []*Measurement) error {
	rows := [][]string{{"run", "what", "unit", "repeat", "value"}}
	for _, m := range runs {
		order, all := quantities([]*Measurement{m})
		for _, q := range order {
			for i, x := range all[q] {
				rows = append(rows, []string{
					m.Name, q.what, q.unit, strconv.Itoa(i + 1), strconv.FormatFloat(x, 'f', -1, 64),
				})
			}
		}
	}
	return csv.NewWriter(w).WriteAll(rows)
}

// assets are the page, with uPlot (MIT license), which draws its pictures.
//
//go:embed assets
var assets embed.FS

// writeHTML writes a page that needs nothing beside it. What comes from records is in it as JSON
// only, which cannot end the script that it stands in; the script shows it as text.
func writeHTML(w io.Writer, list []Section) error {
	for _, s := range list {
		if s.Table != nil {
			s.Table.Text = nil
			for i := range s.Table.Head {
				s.Table.Text = append(s.Table.Text, isText(s.Table, i))
			}
		}
	}
	data, err := json.Marshal(list)
	if err != nil {
		return err
	}
	_, err = strings.NewReplacer(
		"@uplot.css@", asset("uplot.css"), "@style@", asset("page.css"),
		"@uplot.js@", "/*\n"+asset("uplot.LICENSE")+"*/\n"+asset("uplot.js"),
		"@data@", string(data), "@script@", asset("page.js"),
	).WriteString(w, asset("page.html"))
	return err
}

func asset(name string) string {
	b, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // it is embedded
	}
	return string(b)
}
