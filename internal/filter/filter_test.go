package filter_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/filter"
)

var facts = &filter.Candidate{
	Number: 7, Packet: 42, Status: 500, Operation: "sum", Session: "-", Kind: "reply", State: "unchecked",
	Fault:  "Client: no such thing",
	Client: netip.MustParseAddrPort("10.0.0.7:2001"), Server: netip.MustParseAddrPort("[2001:db8::1]:80"),
	Source: netip.MustParseAddrPort("[2001:db8::1]:80"), Target: netip.MustParseAddrPort("10.0.0.7:2001"),
	BodyOctets: 64_000, WireOctets: 128, Duration: 1500 * time.Millisecond,
	Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	Head: []byte("HTTP/1.1 500 No\r\nX-Id: 9\r\n\r\n"), Body: []byte(`<e>the "Needle" \d</e>`),
}

func TestExpressions(t *testing.T) {
	for text, want := range map[string]bool{
		`op == "sum"`:                true,
		`op == sum`:                  true,
		`op != "sum"`:                false,
		`op ~ "^s.m$"`:               true,
		`op !~ "s"`:                  false,
		`number == 7 && packet > 41`: true,
		`bytes > 63k`:                true,
		`bytes >= 64k and bytes<=64000 and not bytes < 64k`: true,
		`bytes > 1M`:                     false,
		`status`:                         true,
		`status != 500`:                  false,
		`fault`:                          true,
		`!fault`:                         false,
		`fault ~ "no such"`:              true,
		`duration > 1s && duration < 2s`: true,
		`duration == 1500ms`:             true,
		`src == 10.0.0.7`:                false,
		`dst == 10.0.0.7 && client == 10.0.0.7:2001`:  true,
		`host == 10.0.0.0/8`:                          true,
		`server == :80`:                               true,
		`server == [2001:db8::1]:80`:                  true,
		`server == 2001:db8::1`:                       true,
		`host != 192.0.2.1`:                           true,
		`time >= 2026-01-02T03:04:05Z`:                true,
		`time < "2026-01-02T03:04:05Z"`:               false,
		`hhfr`:                                        false,
		`reply && !request`:                           true,
		`kind == 'reply' || number == 1`:              true,
		`body ~ "Needle"`:                             true,
		`body ~ '"Needle"'`:                           true,
		`body ~ "\"Needle\" \\d"`:                     true,
		`body ~ '\\d'`:                                true,
		`body ~ "n.*dle"`:                             false,
		`body ~ "(?i)needle"`:                         true,
		`head ~ "X-Id: 9"`:                            true,
		`op == "a" || op == "sum" && number == 8`:     false,
		`(op == "a" || op == "sum") && number == 7`:   true,
		`!(op == "a") && !!reply`:                     true,
		`session == "-"`:                              true,
		`state == "verified" or state == "unchecked"`: true,
	} {
		e, err := filter.Parse(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, e.Holds(facts), text)
	}
	var none *filter.Expression
	assert.True(t, none.Holds(facts))
	sum, err := filter.Parse(`op == "sum"`)
	require.NoError(t, err)
	no, err := filter.Parse(`op == "no"`)
	require.NoError(t, err)
	assert.True(t, none.And(sum).And(none).Holds(facts))
	assert.False(t, sum.And(no).Holds(facts))

	empty := &filter.Candidate{}
	for text, want := range map[string]bool{
		`duration < 1s`: false, `duration`: false, `time < 2026-01-01T00:00:00Z`: false, `time`: false, `src`: false,
		`src == 10.0.0.0/8`: false, `fault`: false, `body`: false, `head == ""`: true,
	} {
		e, err := filter.Parse(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, e.Holds(empty), text)
	}
}

// What is wrong is said with its place.
func TestWrongExpressions(t *testing.T) {
	for text, want := range map[string]string{
		``:                                 "column 1: a comparison is missing",
		`opp == "x"`:                       `column 1: no field "opp"; there are body, bytes, call, client,`,
		`"x" == op`:                        `column 1: no field "x"`,
		`op == `:                           "column 7: a value is missing behind ==",
		`op == && reply`:                   "column 7: a value is missing behind ==: texts stand in quotes",
		`op < "x"`:                         "column 4: op: it is text: it is compared by ==, !=, ~ and !~",
		`reply == 1`:                       "column 7: reply: it is true or not",
		`src > 10.0.0.1`:                   "column 5: src: it is an address",
		`src == here`:                      `column 8: src: "here" is no address: IP, IP:PORT, :PORT or IP/LENGTH`,
		`src == :0`:                        `column 8: src: ":0" is no port`,
		`bytes > many`:                     `column 9: bytes: "many" is no number, as 200, 64k or 2M are`,
		`bytes > 9999999999999M`:           "is no number",
		`bytes ~ 3`:                        "column 7: bytes: it is compared by ==, !=, <, <=, > and >=",
		`duration > 3`:                     `column 12: duration: "3" is no duration, as 250ms or 1.5s are`,
		`time > noon`:                      `column 8: time: "noon" is no time`,
		`body ~ "("`:                       `column 8: body: "(" is no regular expression`,
		`body ~ "x`:                        "column 8: a quote that does not end",
		`(reply`:                           "column 7: a ) is missing for the ( at column 1",
		`reply)`:                           `column 6: ")" is not expected here: && or || join comparisons`,
		`reply request`:                    `column 7: "request" is not expected here`,
		`reply ""`:                         `column 7: "" is not expected here`,
		`reply & request`:                  `column 7: "&" is not expected here`,
		`op = "x"`:                         `column 4: "=" is not expected here`,
		`body ~ "ä" && x`:                  `column 15: no field "x"`,
		strings.Repeat("!", 200) + "reply": "nest deeper than 100",
		strings.Repeat(" ", 20_000):        "more than 10000 bytes",
	} {
		e, err := filter.Parse(text)
		var syntax *filter.SyntaxError
		require.ErrorAs(t, err, &syntax, text)
		assert.Nil(t, e)
		assert.Contains(t, err.Error(), want, text)
	}
	_, err := filter.Parse(`reply && opp == "x"`)
	var syntax *filter.SyntaxError
	require.ErrorAs(t, err, &syntax)
	assert.Equal(t, "reply && opp == \"x\"\n         ^", syntax.Caret())
	for _, f := range filter.Fields() {
		assert.NotEmpty(t, f[1], f[0])
	}
}

// Any text is an expression, or an error that names a place in it.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		`op == "sum" && bytes > 200 && !fault && src == 10.0.0.7 && body ~ "Needle"`, `(a`,
		`time > 2026-01-02T03:04:05Z`,
		`host == [::1]:80 or not duration >= 1.5s`, `body ~ "(?i)\"x\\"`, `'`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := filter.Parse(text)
		var syntax *filter.SyntaxError
		if err != nil {
			require.ErrorAs(t, err, &syntax)
			require.LessOrEqual(t, syntax.Column, len(text)+1)
			require.NotEmpty(t, syntax.Caret())
			return
		}
		e.Holds(facts)
	})
}
