// Command wasm is what the page of hhfr runs in a browser. It defines an object hhfr there:
//
//	open([[name, Uint8Array]…])  text of what was found; begins with "error: " if nothing was
//	choose(filter, text)         what is wrong with the filter; empty: nothing
//	length()                     number of the chosen messages
//	columns(), row(i)            texts
//	show(i, pretty)              head and body
package main

import (
	"fmt"
	"syscall/js"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/page"
)

func main() {
	v := new(page.Viewer)
	functions := map[string]func(args []js.Value) any{
		"open": func(args []js.Value) any {
			opened, err := page.Open(filesOf(args[0]))
			if err != nil {
				return "error: " + err.Error()
			}
			v = opened
			return v.Found()
		},
		"choose": func(args []js.Value) any {
			if err := v.Choose(args[0].String(), args[1].String()); err != nil {
				return err.Error()
			}
			return ""
		},
		"length":  func([]js.Value) any { return v.Len() },
		"columns": func([]js.Value) any { return texts(page.Columns...) },
		"row":     func(args []js.Value) any { return texts(v.Row(args[0].Int())...) },
		"show": func(args []js.Value) any {
			head, body := v.Show(args[0].Int(), args[1].Bool())
			return texts(head, body)
		},
	}
	hhfr := map[string]any{}
	for name, f := range functions {
		hhfr[name] = js.FuncOf(func(_ js.Value, args []js.Value) (result any) {
			defer func() {
				if defect := recover(); defect != nil { // the page stays usable
					result = fmt.Sprint("error: a defect of this page: ", defect)
				}
			}()
			return f(args)
		})
	}
	js.Global().Set("hhfr", hhfr)
	select {}
}

func filesOf(list js.Value) (files []page.DroppedFile) {
	for i := range list.Length() {
		octets := list.Index(i).Index(1)
		f := page.DroppedFile{Name: list.Index(i).Index(0).String(), Octets: make([]byte, octets.Length())}
		js.CopyBytesToGo(f.Octets, octets)
		files = append(files, f)
	}
	return files
}

func texts(list ...string) []any {
	values := make([]any, len(list))
	for i, text := range list {
		values[i] = text
	}
	return values
}
