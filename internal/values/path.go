package values

import (
	"fmt"
	"strconv"
	"strings"
)

// A path leads to a value by names with / between them; a number is an item of an array, from 0. No
// name of XML has a / or begins with a digit. In {namespace}local a / leads nowhere.

// steps are the parts of a path.
func steps(path string) (list []string) {
	from, inside := 0, 0
	for i, c := range path {
		switch c {
		case '{':
			inside++
		case '}':
			inside--
		case '/':
			if inside == 0 {
				list = append(list, path[from:i])
				from = i + 1
			}
		}
	}
	return append(list, path[from:])
}

// At is the value that a path leads to; an empty one leads to v. An array of one item need not be
// named. Error: there is none.
func (v *JSON) At(path string) (*JSON, error) {
	if path == "" {
		return v, nil
	}
	for _, step := range steps(path) {
		n, err := strconv.Atoi(step)
		switch {
		case v.Kind == Array && err == nil && n >= 0 && n < len(v.Items):
			v = v.Items[n]
			continue
		case v.Kind == Array && err == nil:
			return nil, fmt.Errorf("there is no item %d of %d in %s", n, len(v.Items), path)
		case v.Kind == Array && len(v.Items) == 1:
			v = v.Items[0]
		case v.Kind == Array:
			return nil, fmt.Errorf("before %s in %s stands an array of %d items: which one? The first is 0", step, path,
				len(v.Items))
		}
		next := v.Get(step)
		if next == nil {
			return nil, fmt.Errorf("there is no %s%s%s", step, of(step, path), v.there())
		}
		v = next
	}
	return v, nil
}

func of(step, path string) string {
	if step == path {
		return ""
	}
	return " of " + path
}

// there goes on after "there is no", with the names that an object has.
func (v *JSON) there() string {
	var names []string
	for _, one := range v.Members {
		names = append(names, one.Name)
	}
	if len(names) == 0 {
		return ": nothing is there"
	}
	return ": there is " + strings.Join(names, ", ")
}

// Assign puts a value where a path leads to, and makes the objects and arrays before it. A second
// value of one path makes an array. v is an object.
func (v *JSON) Assign(path string, value *JSON) error {
	list := steps(path)
	for i, step := range list {
		last := i == len(list)-1
		next := &JSON{Kind: Object, Place: value.Place}
		if last {
			next = value
		} else if _, err := strconv.Atoi(list[i+1]); err == nil {
			next.Kind = Array
		}
		n, err := strconv.Atoi(step)
		switch {
		case step == "":
			return fmt.Errorf("the path %q has an empty name", path)
		case v.Kind == Array && (err != nil || n < 0 || n > len(v.Items)):
			return fmt.Errorf("%s of %s is no number of an item: the next is %d", step, path, len(v.Items))
		case v.Kind == Array && n == len(v.Items):
			v.Items = append(v.Items, next)
			v = next
		case v.Kind == Array && last:
			return fmt.Errorf("%s is there twice", path)
		case v.Kind == Array:
			v = v.Items[n]
		case v.Kind != Object:
			return fmt.Errorf("%s goes through a value", path)
		default:
			there := v.Get(step)
			switch {
			case there == nil:
				v.set(step, next)
				v = next
			case last && there.Kind == Array:
				there.Items = append(there.Items, value)
			case last:
				first := *there
				*there = JSON{Kind: Array, Items: []*JSON{&first, value}, Place: first.Place}
			default:
				v = there
			}
		}
	}
	return nil
}

// Lines are all single values as PATH=VALUE, in their order. Line breaks in values, and
// backslashes, are escaped.
func (v *JSON) Lines() (list []string) {
	v.lines("", &list)
	return list
}

func (v *JSON) lines(path string, list *[]string) {
	below := func(step string) string { return strings.TrimPrefix(path+"/"+step, "/") }
	switch {
	case v.Kind == Object && len(v.Members) > 0:
		for _, m := range v.Members {
			m.Value.lines(below(m.Name), list)
		}
	case v.Kind == Array && len(v.Items) > 0:
		for i, item := range v.Items {
			item.lines(below(strconv.Itoa(i)), list)
		}
	default:
		*list = append(*list, path+"="+strings.NewReplacer("\\", `\\`, "\n", `\n`, "\r", `\r`).Replace(v.Plain()))
	}
}

// Plain is the text of a single value, as a shell has it: a string without quotes.
func (v *JSON) Plain() string {
	if v.Kind == String || v.Kind == Loose {
		return v.Text
	}
	text, err := v.MarshalJSON()
	if err != nil {
		return ""
	}
	return string(text)
}
