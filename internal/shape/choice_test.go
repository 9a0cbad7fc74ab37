package shape_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/shape/program"
)

const xsi = ` xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"`

// choices are messages of one kind, and the shape that is learned from them in this order: texts as
// they are, values as their types, ( | ) choices, ? optional, * arrays.
func choices() []struct {
	name     string
	messages []string
	want     string
} {
	return []struct {
		name     string
		messages []string
		want     string
	}{
		{"different elements at one place", []string{`<r><ok>1</ok></r>`, `<r><error>no such</error></r>`,
			`<r><later/></r>`},
			`<r>(<ok>{int}</ok>|<error>{text}</error>|<later/>)</r>`},
		{"indented", []string{"<r>\n <a/>\n <x>1</x>\n</r>", "<r>\n <a/>\n <y>1</y>\n</r>"},
			"<r>\n <a/>(\n <x>{int}</x>|\n <y>{int}</y>)\n</r>"},
		{"a choice that may be absent", []string{`<r><h/><a/></r>`, `<r><h/><b/></r>`, `<r><h/></r>`},
			`<r><h/>(<a/>|<b/>)?</r>`},
		{"what comes together is optional", []string{`<r><a/><t/></r>`, `<r><b/><t/></r>`, `<r><a/><b/><t/></r>`},
			`<r><a/>?<b/>?<t/></r>`},
		{"what comes in both orders is a list", []string{`<r><a/><b/></r>`, `<r><b/><a/></r>`}, `<r>(<a/>|<b/>)*</r>`},
		{"siblings in no order", []string{`<r><h/><a/><b/><a/><c/><a/><b/><t/></r>`,
			`<r><h/><b/><a/><c/><a/><t/></r>`}, `<r><h/>(<a/>|<b/>|<c/>)*<t/></r>`},
		{"in one message", []string{`<r><h/>` + strings.Repeat(`<a/><b/><a/><c/>`, 5) + `<t/></r>`},
			`<r><h/>(<a/>|<b/>|<c/>)*<t/></r>`},
		{"names that are all prefix", []string{`<r>` + strings.Repeat(`<a:/><b:/>`, 9) + `</r>`},
			`<r>(<a:/>|<b:/>)*</r>`},
		{"a name twice is a sequence, until it comes otherwise", []string{`<r><a/><b/><a/><c/></r>`},
			`<r><a/><b/><a/><c/></r>`},
		{"otherwise", []string{`<r><a/><b/><a/><c/></r>`, `<r><a/><b/><c/></r>`, `<r><b/><a/><b/><a/><c/></r>`},
			`<r>(<a/>|<b/>)*<c/></r>`},
		{"variants of one element in an array",
			[]string{`<r` + xsi + `><i xsi:type="A"><x>1</x></i>` +
				`<i xsi:type="B"><y>1</y></i><i xsi:type="A"><x>2</x></i></r>`},
			`<r` + xsi + `>(<i xsi:type="B"><y>{int}</y></i>|<i xsi:type="A"><x>{int}</x></i>)*</r>`},
		{"variants with prefixes of their own",
			[]string{`<r` + xsi + `><v xmlns:d4p1="u" xsi:type="d4p1:int">1</v></r>`,
				`<r` + xsi + `><v xmlns:d4p1="u" xsi:type="d4p1:string">a</v></r>`},
			`<r` + xsi + `>(<v xmlns:#="u" xsi:type="#:string">{text}</v>|` +
				`<v xmlns:#="u" xsi:type="#:int">{int}</v>)</r>`},
		{"types of what is alike stay together",
			[]string{`<r` + xsi + `><i xsi:type="A"><x>1</x></i><i xsi:type="B"><x>2</x></i></r>`},
			`<r` + xsi + `><i xsi:type="(A"|B")><x>{int}</x></i>*</r>`},
		{"a type that no guard reads tells nothing",
			[]string{`<r` + xsi + `><i id="1" xsi:type="A"><x>1</x></i><i id="2" xsi:type="B"><y>2</y></i></r>`},
			`<r` + xsi + `><i id="{int}" xsi:type="(A"|B")>(<x>{int}</x>|<y>{int}</y>)</i>*</r>`},
	}
}

func learnAll(t testing.TB, messages []string) *shape.Shape {
	t.Helper()
	var all *learn.Family
	for _, m := range messages {
		f, err := learn.NewFamily([]byte(m), true)
		require.NoError(t, err, m)
		if all == nil {
			all = f
			continue
		}
		all = all.Widen(f)
		require.NotNil(t, all, m)
	}
	s, err := all.Shape()
	require.NoError(t, err)
	return s
}

// sketch writes a shape in the notation of choices.
func sketch(n *shape.Node) string {
	var all []string
	for _, k := range n.Kids {
		all = append(all, sketch(k))
	}
	inside := strings.Join(all, "")
	switch n.Kind {
	case shape.Text:
		return n.Text
	case shape.Value:
		return "{" + n.Type.String() + "}"
	case shape.Slot, shape.Again:
		return "#"
	case shape.Array:
		return inside + "*"
	case shape.Optional:
		return inside + "?"
	case shape.Choice:
		return "(" + strings.Join(all, "|") + ")"
	}
	return inside
}

func TestChoices(t *testing.T) {
	for _, c := range choices() {
		s := learnAll(t, c.messages)
		assert.Equal(t, c.want, sketch(s.Root()), c.name)
		for _, m := range c.messages {
			fits, _ := requireLaw1(t, program.Compile(s), []byte(m), c.name)
			assert.True(t, fits, "%s: %s", c.name, m)
		}
	}
}

// TestChoicesAreBounded: elements that are ever different do not make a choice without end, but
// open content.
func TestChoicesAreBounded(t *testing.T) {
	var messages []string
	for i := range 40 {
		messages = append(messages, fmt.Sprintf("<r><e%d/></r>", i))
	}
	assert.Equal(t, 31, strings.Count(sketch(learnAll(t, messages[:32]).Root()), "|"))
	all := ""
	for i := range messages {
		all += fmt.Sprintf("<e%d/>", i)
		messages[i] = "<t>" + messages[i] + "</t>"
	}
	assert.Equal(t, "<t><r>{open}</r></t>", sketch(learnAll(t, messages).Root()))
	assert.Equal(t, "<t><r>{open}</r></t>", sketch(learnAll(t, []string{"<t><r>" + all + all + "</r></t>",
		"<t><r><e1/>" + all + "</r></t>"}).Root()))
}

// TestAFamilyFitsWhatItLearned: whatever came, in whatever order, the shape of a family fits every
// message it was learned from.
func TestAFamilyFitsWhatItLearned(t *testing.T) {
	checked := 0
	for seed := range uint64(1500) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var all *learn.Family
		var messages []string
		for range 8 {
			m := "<r" + xsi + "><h/>" + anyContent(rnd, 1) + "<t/></r>"
			f, err := learn.NewFamily([]byte(m), true)
			require.NoError(t, err)
			if all != nil {
				if f = all.Widen(f); f == nil {
					break // the root element has nothing fixed in it
				}
			}
			all, messages = f, append(messages, m)
			s, err := all.Shape()
			require.NoError(t, err)
			p := program.Compile(s)
			var sp program.Splitter
			for i, m := range messages {
				sp.Reset(p, 4096, true, func(bool, []byte) error { return nil })
				checked++
				require.NoError(t, sp.Split([]byte(m)), "seed %d: message %d of %d: %q", seed, i+1, len(messages),
					messages)
			}
		}
	}
	assert.Greater(t, checked, 5000)
}

// anyContent is a number, a word, a sequence with gaps, one of some elements, many in any order, or
// variants of one.
func anyContent(rnd *rand.Rand, depth int) string {
	names := "abcdef"
	var b strings.Builder
	one := func(c byte) {
		inside := fmt.Sprint(rnd.IntN(9))
		if depth > 0 {
			inside = anyContent(rnd, depth-1)
		}
		fmt.Fprintf(&b, "<%c>%s</%c>", c, inside, c)
	}
	switch rnd.IntN(6) {
	case 0:
		return fmt.Sprint(rnd.IntN(100))
	case 1:
		return "word"
	case 2:
		for i := range len(names) {
			if rnd.IntN(2) == 0 {
				one(names[i])
			}
		}
	case 3:
		one(names[rnd.IntN(4)])
	case 4:
		for range rnd.IntN(6) {
			one(names[rnd.IntN(4)])
		}
	case 5:
		for range rnd.IntN(6) {
			kind := rnd.IntN(3)
			fmt.Fprintf(&b, `<i xmlns:d4p1="u" xsi:type="d4p1:%c">%s</i>`, "ABC"[kind], []string{"5", "w",
				"<x>1</x>"}[kind])
		}
	}
	return b.String()
}
