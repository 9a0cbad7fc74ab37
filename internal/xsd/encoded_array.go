package xsd

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// arrayTypes matches the type of an array in a message: that of the items, ranks of arrays that
// these are, and the size (SOAP 1.1, section 5.4.2).
var arrayTypes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*([^\[\]\s]+)((?:\[,*\])*)\[([0-9, ]*)\]\s*$`)
})

// places matches an offset or position.
var places = regexp.MustCompile(`^\s*\[([0-9, ]+)\]\s*$`)

// sizes matches the numbers in dimensions.
var sizes = regexp.MustCompile(`[0-9 ]+`)

// encodedArray is an array of a message: the type of its items, and how many it has in each
// direction; nil: any number.
type encodedArray struct {
	item       *TypeDef
	dimensions string
	size       []int
}

// items compares those of an array: they have any names.
func (c *encodedChecker) items(t *TypeDef, n *DocumentNode, path string) {
	c.noText(n, path)
	a := encodedArray{item: t.Array, dimensions: t.Dimensions}
	if p := simplify(t.Particle); a.item.Any && p != nil && p.Kind == ElementParticle {
		a.item = p.Element.Type // as tools declare arrays that do not say wsdl:arrayType
	}
	if text, stated := n.getName(enc("arrayType")); stated {
		if !c.arrayType(&a, text, n, path) {
			return
		}
	} else if at := strings.LastIndexByte(a.dimensions, '['); at >= 0 {
		a.size, _ = numbers(strings.Trim(a.dimensions[at:], "[]"))
	}
	item := a.item
	if outer := strings.LastIndexByte(a.dimensions, '['); outer > 0 {
		item = c.innerArray(innerArray{a.item, a.dimensions[:outer]})
	}
	c.places(&a, n, path)
	for i, kid := range n.Children {
		c.value(&ElementDecl{Name: kid.Name, Type: item}, kid, path+"/"+kid.Name.Local+"["+strconv.Itoa(i+1)+"]")
	}
}

// innerArray is an array that is an item of another one.
type innerArray struct {
	item       *TypeDef
	dimensions string
}

// innerArray makes the type of one, once: arrays may contain themselves.
func (c *encodedChecker) innerArray(of innerArray) *TypeDef {
	t := c.inner[of]
	if t == nil {
		t = &TypeDef{Array: of.item, Dimensions: of.dimensions}
		c.inner[of] = t
	}
	return t
}

// arrayType reads what a message says of an array; false: that is wrong, or not known.
func (c *encodedChecker) arrayType(a *encodedArray, text string, n *DocumentNode, path string) bool {
	parts := arrayTypes().FindStringSubmatch(text)
	ok := parts != nil
	if ok {
		a.size, ok = numbers(parts[3])
	}
	if !ok {
		c.fail(n, path, "arrayType %.60q is no type with a size", text)
		return false
	}
	of := c.typeNamed("arrayType", parts[1], n, path)
	if of == nil {
		return false
	}
	own := parts[2] + "[" + sizes.ReplaceAllString(parts[3], "") + "]"
	anything := a.item.Any
	is, fits := c.fits(of, a.item)
	switch {
	case of.Any: // the items say what they are
	case !fits:
		c.fail(n, path, "arrayType %.60q, where the items are %s", text, a.item.title())
		return false
	default:
		a.item = is
	}
	if declared := sizes.ReplaceAllString(a.dimensions, ""); declared != "" && declared != own && !anything {
		c.fail(n, path, "arrayType %.60q, where the dimensions are %s", text, a.dimensions)
		return false
	}
	a.dimensions = own
	return true
}

// maxItems is more than any message has.
const maxItems = 1 << 30

// numbers reads sizes that commas separate; none of them is any.
func numbers(text string) (list []int, ok bool) {
	if strings.Trim(text, ", ") == "" {
		return nil, true
	}
	for field := range strings.SplitSeq(text, ",") {
		v, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || v > maxItems {
			return nil, false
		}
		list = append(list, v)
	}
	return list, true
}

// at is how many items stand before a place; false: it is none of the array.
func (a *encodedArray) at(text string) (before int, ok bool) {
	parts := places.FindStringSubmatch(text)
	if parts == nil {
		return 0, false
	}
	list, ok := numbers(parts[1])
	if !ok || a.size != nil && len(list) != len(a.size) {
		return 0, false
	}
	for i, v := range list {
		most := maxItems
		if a.size != nil {
			most = a.size[i]
		}
		if v >= most {
			return 0, false
		}
		before = min(before*most+v, maxItems)
	}
	return before, true
}

// count is how many items there are; false: any number.
func (a *encodedArray) count() (n int, known bool) {
	n = 1
	for _, v := range a.size {
		n = min(n*v, maxItems)
	}
	return n, a.size != nil
}

// places compares where the items of an array stand, of which some may be left out (SOAP 1.1,
// sections 5.4.2.1 and 5.4.2.2).
func (c *encodedChecker) places(a *encodedArray, n *DocumentNode, path string) {
	before := 0
	if text, partial := n.getName(enc("offset")); partial {
		var ok bool
		if before, ok = a.at(text); !ok {
			c.fail(n, path, "offset %.40q is no place in %s", text, a.title())
			return
		}
	}
	sparse, taken := 0, map[int]bool{}
	for _, kid := range n.Children {
		text, placed := kid.getName(enc("position"))
		if !placed {
			continue
		}
		sparse++
		switch at, ok := a.at(text); {
		case !ok:
			c.fail(kid, path, "position %.40q is no place in %s", text, a.title())
		case taken[at]:
			c.fail(kid, path, "position %.40q is taken", text)
		default:
			taken[at] = true
		}
	}
	most, known := a.count()
	switch {
	case sparse > 0 && sparse < len(n.Children):
		c.fail(n, path, "%d of %d items have no position", len(n.Children)-sparse, len(n.Children))
	case sparse == 0 && known && before+len(n.Children) > most:
		c.fail(n, path, "%d items from place %d on, in %s", len(n.Children), before, a.title())
	}
}

func (a *encodedArray) title() string {
	n, known := a.count()
	if !known {
		return "an array of any size"
	}
	return fmt.Sprintf("an array of %d items", n)
}
