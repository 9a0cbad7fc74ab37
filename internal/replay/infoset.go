package replay

import (
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hhfr/hhfr/internal/xmltree"
	"github.com/hhfr/hhfr/internal/xpath"
)

// Comparison is how replies are compared with the recorded ones. Its zero value compares byte for
// byte. It is not safe for concurrent use.
type Comparison struct {
	// Infoset: elements, attributes and texts are compared, and not how they are written: prefixes,
	// quotes, order of attributes, white space between elements, comments.
	Infoset bool
	// Ignore selects what is not compared.
	Ignore []*xpath.XPath
	// IDs: UUIDs are not compared, and what names messages in WS-Addressing; Times: dates with
	// times are not.
	IDs, Times bool
}

// NewComparison is a comparison by bytes or infoset; empty: by infoset if there is something to
// ignore. What is ignored are XPaths, ids and times.
func NewComparison(by string, ignore []string) (c Comparison, err error) {
	switch {
	case by != "" && by != "bytes" && by != "infoset":
		return c, fmt.Errorf("--compare is bytes or infoset, not %s", by)
	case by == "bytes" && len(ignore) > 0:
		return c, errors.New("--ignore needs --compare infoset: bytes are compared whole")
	}
	c.Infoset = by == "infoset" || len(ignore) > 0
	for _, one := range ignore {
		switch one {
		case "ids":
			c.IDs = true
		case "times":
			c.Times = true
		default:
			e, err := xpath.Compile(one)
			if err != nil {
				return c, fmt.Errorf("--ignore: %s: %w", one, err)
			}
			c.Ignore = append(c.Ignore, e)
		}
	}
	return c, nil
}

// ContentChange is one place in which two replies differ.
type ContentChange struct {
	// Path leads there by local names, with [n] where several elements have the name; a text is
	// where its element is.
	Path string `json:"path"`
	// text, attribute, missing (it is recorded, and not there now) or added
	What     string `json:"what"`
	Recorded string `json:"recorded,omitempty"` // its text; of an element all texts in it
	Now      string `json:"now,omitempty"`
}

const (
	// maxChanges bounds the list of changes; the rest is left out.
	maxChanges = 100
	// maxAligned bounds the elements of one list that are put in relation by their names.
	maxAligned = 2000
	// maxValue is the longest value of a change, in characters.
	maxValue = 200
)

// Compare is [Compare] by these rules. What is no XML is compared byte for byte.
func (c *Comparison) Compare(recordedStatus int, recorded []byte, status int, now []byte) *Difference {
	if !c.Infoset || recordedStatus != status {
		return Compare(recordedStatus, recorded, status, now)
	}
	before, err := xmltree.Parse(recorded)
	after, errNow := xmltree.Parse(now)
	if err != nil || errNow != nil {
		return Compare(recordedStatus, recorded, status, now)
	}
	d := &contentDiffer{rules: c, trees: [2]*xmltree.ParsedDocument{before, after}, seed: maphash.MakeSeed()}
	for i := range d.trees {
		if d.ignored[i], err = c.ignored(d.trees[i]); err != nil {
			return Compare(recordedStatus, recorded, status, now)
		}
		d.sum(i)
	}
	d.children(0, 0, "")
	if len(d.changes) == 0 {
		return nil
	}
	return &Difference{What: "content", Recorded: d.changes[0].Recorded, Now: d.changes[0].Now,
		RecordedOctets: len(recorded), NowOctets: len(now), Changes: d.changes}
}

// ignored is what is not compared in a tree.
func (c *Comparison) ignored(t *xmltree.ParsedDocument) (map[xpath.Selected]bool, error) {
	places := map[xpath.Selected]bool{}
	for _, e := range c.Ignore {
		list, err := e.Select(t)
		if err != nil {
			return nil, err
		}
		for _, p := range list {
			places[p] = true
		}
	}
	return places, nil
}

// contentDiffer compares two trees, the recorded one and the new one.
type contentDiffer struct {
	rules   *Comparison
	trees   [2]*xmltree.ParsedDocument
	ignored [2]map[xpath.Selected]bool
	sums    [2][]uint64 // of their elements
	seed    maphash.Seed
	changes []ContentChange
}

// whole is the place of a node itself.
func whole(node int) xpath.Selected { return xpath.Selected{Node: node, Attr: -1} }

func (d *contentDiffer) node(side, at int) *xmltree.TreeNode { return &d.trees[side].Nodes[at] }

func (d *contentDiffer) full() bool { return len(d.changes) >= maxChanges }

func (d *contentDiffer) add(path, what, recorded, now string) {
	if !d.full() {
		d.changes = append(d.changes, ContentChange{path, what, shortened(recorded), shortened(now)})
	}
}

func shortened(value string) string {
	if r := []rune(value); len(r) > maxValue {
		return string(r[:maxValue]) + "…"
	}
	return value
}

// same reports whether two elements do not differ.
func (d *contentDiffer) same(a, b int) bool { return d.sums[0][a] == d.sums[1][b] }

// sum adds up what is compared of each element of a tree; those that are in others come first.
func (d *contentDiffer) sum(side int) {
	t := d.trees[side]
	d.sums[side] = make([]uint64, len(t.Nodes))
	for at := len(t.Nodes) - 1; at > 0; at-- {
		n := &t.Nodes[at]
		if n.IsText {
			continue
		}
		var h maphash.Hash
		h.SetSeed(d.seed)
		put := func(text string) { fmt.Fprintf(&h, "%d %s", len(text), text) }
		put(n.Space)
		put(n.Local)
		attrs := d.attrs(side, at)
		for _, name := range slices.Sorted(maps.Keys(attrs)) {
			put(name)
			put(d.rules.normal("", attrs[name]))
		}
		elements := d.elements(side, at)
		put(d.rules.normal(n.Local, d.own(side, at)))
		for _, i := range elements {
			fmt.Fprintf(&h, " %x", d.sums[side][i])
		}
		d.sums[side][at] = h.Sum64()
	}
}

// element compares two elements of one name.
func (d *contentDiffer) element(a, b int, path string) {
	d.attributes(a, b, path)
	d.children(a, b, path)
}

func (d *contentDiffer) attributes(a, b int, path string) {
	sides := [2]map[string]string{d.attrs(0, a), d.attrs(1, b)}
	names := maps.Clone(sides[0])
	maps.Copy(names, sides[1])
	for _, name := range slices.Sorted(maps.Keys(names)) {
		recorded, had := sides[0][name]
		now, has := sides[1][name]
		at := path + "/@" + name[strings.LastIndexByte(name, '}')+1:]
		switch {
		case !has:
			d.add(at, "missing", recorded, "")
		case !had:
			d.add(at, "added", "", now)
		case d.rules.normal("", recorded) != d.rules.normal("", now):
			d.add(at, "attribute", recorded, now)
		}
	}
}

// attrs are the attributes of an element that are compared.
func (d *contentDiffer) attrs(side, at int) map[string]string {
	attrs := map[string]string{}
	for i, attr := range d.node(side, at).Attrs {
		if !d.ignored[side][xpath.Selected{Node: at, Attr: i}] {
			attrs["{"+attr.Space+"}"+attr.Local] = attr.Value
		}
	}
	return attrs
}

// children compares what is in two elements: texts as one where there are no elements, and else the
// elements, with the texts between them that are not white space alone.
func (d *contentDiffer) children(a, b int, path string) {
	lists := [2][]int{d.elements(0, a), d.elements(1, b)}
	texts := [2]string{d.own(0, a), d.own(1, b)}
	name := d.node(0, a).Local
	if d.rules.normal(name, texts[0]) != d.rules.normal(name, texts[1]) {
		d.add(path, "text", texts[0], texts[1])
	}
	from, to := 0, [2]int{len(lists[0]), len(lists[1])}
	for from < to[0] && from < to[1] && d.same(lists[0][from], lists[1][from]) {
		from++
	}
	for to[0] > from && to[1] > from && d.same(lists[0][to[0]-1], lists[1][to[1]-1]) {
		to[0]--
		to[1]--
	}
	for _, pair := range d.pairs(lists[0][from:to[0]], lists[1][from:to[1]]) {
		switch {
		case d.full():
			return
		case pair[1] == 0:
			d.add(d.step(0, path, lists[0], pair[0]), "missing", d.all(0, pair[0]), "")
		case pair[0] == 0:
			d.add(d.step(1, path, lists[1], pair[1]), "added", "", d.all(1, pair[1]))
		default:
			d.element(pair[0], pair[1], d.step(0, path, lists[0], pair[0]))
		}
	}
}

// elements are those in a node that are compared.
func (d *contentDiffer) elements(side, at int) (list []int) {
	for i := d.node(side, at).First; i > 0; i = d.node(side, i).Next {
		if !d.node(side, i).IsText && !d.ignored[side][whole(i)] {
			list = append(list, i)
		}
	}
	return list
}

// own is the text of a node beside its elements, without white space around; of one without
// elements all of it.
func (d *contentDiffer) own(side, at int) string {
	texts, elements := []string{}, false
	for i := d.node(side, at).First; i > 0; i = d.node(side, i).Next {
		if n := d.node(side, i); n.IsText {
			texts = append(texts, n.Text)
		} else {
			elements = true
		}
	}
	if !elements {
		return strings.Join(texts, "")
	}
	for i := range texts {
		texts[i] = strings.TrimSpace(texts[i])
	}
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), " ")
}

// all is the text in a node, that of its elements too.
func (d *contentDiffer) all(side, at int) string {
	var b strings.Builder
	t := d.trees[side]
	for i := t.Nodes[at].First; i > 0; i = t.After(i, at) {
		b.WriteString(t.Nodes[i].Text)
	}
	return b.String()
}

// pairs puts elements in relation by their names, in order; 0 stands for none.
func (d *contentDiffer) pairs(was, is []int) (list [][2]int) {
	sameName := func(a, b int) bool {
		x, y := d.node(0, a), d.node(1, b)
		return x.Local == y.Local && x.Space == y.Space
	}
	was, is = was[:min(len(was), maxAligned)], is[:min(len(is), maxAligned)]
	// length of the longest common sequence of names from i and k on
	common := make([][]int16, len(was)+1)
	for i := range common {
		common[i] = make([]int16, len(is)+1)
	}
	for i := len(was) - 1; i >= 0; i-- {
		for k := len(is) - 1; k >= 0; k-- {
			if common[i][k] = max(common[i+1][k], common[i][k+1]); sameName(was[i], is[k]) {
				common[i][k] = common[i+1][k+1] + 1
			}
		}
	}
	i, k := 0, 0
	for i < len(was) || k < len(is) {
		switch {
		case i < len(was) && k < len(is) && sameName(was[i], is[k]):
			list = append(list, [2]int{was[i], is[k]})
			i++
			k++
		case k >= len(is) || i < len(was) && common[i+1][k] >= common[i][k+1]:
			list = append(list, [2]int{was[i], 0})
			i++
		default:
			list = append(list, [2]int{0, is[k]})
			k++
		}
	}
	return list
}

// step is the path to an element among those around it.
func (d *contentDiffer) step(side int, path string, among []int, at int) string {
	name := d.node(side, at).Local
	place, all := 0, 0
	for _, i := range among {
		if d.node(side, i).Local == name {
			if all++; i == at {
				place = all
			}
		}
	}
	if path += "/" + name; all > 1 {
		path += fmt.Sprintf("[%d]", place)
	}
	return path
}

var uuid = regexp.MustCompile(`^(urn:)?(uuid:)?[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$`)

// normal is a value of an element, or one for all that are not to be told apart.
func (c *Comparison) normal(element, value string) string {
	switch trimmed := strings.TrimSpace(value); {
	case c.IDs && (element == "MessageID" || element == "RelatesTo" || uuid.MatchString(trimmed)):
		return "\x00id"
	case c.Times && isTime(trimmed):
		return "\x00time"
	}
	return value
}

// isTime reports whether a value is a date with a time, of XML Schema or HTTP.
func isTime(value string) bool {
	for _, form := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", http.TimeFormat, time.RFC1123Z} {
		if _, err := time.Parse(form, value); err == nil {
			return true
		}
	}
	return false
}
