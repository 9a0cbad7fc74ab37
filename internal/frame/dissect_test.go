package frame_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
)

// TestDissectNamesEachOctet has each frame of the vectors: its fields follow each other without
// gaps, and their names are those of the page.
func TestDissectNamesEachOctet(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "wire-format.md"))
	require.NoError(t, err)
	words := map[string]bool{}
	for _, word := range regexp.MustCompile(`\w[\w-]*`).FindAllString(string(page), -1) {
		words[word] = true
	}
	for name, f := range frames {
		octets := f.AppendTo(nil)
		fields, n, err := frame.Dissect(append(octets, 0xff), nil)
		require.NoError(t, err, name)
		require.Equal(t, len(octets), n, name)
		at := 0
		for _, one := range fields {
			require.Equal(t, at, one.From, "%s: %s", name, one.Name)
			require.Greater(t, one.To, one.From, "%s: %s", name, one.Name)
			at = one.To
			for word := range strings.FieldsSeq(one.Name) {
				assert.True(t, words[word], "%s: %s is no word of the page", name, word)
			}
		}
		require.Equal(t, n, at, name)
		for cut := range len(octets) {
			_, _, err := frame.Dissect(octets[:cut], nil)
			require.Error(t, err, "%s cut at %d", name, cut)
		}
	}
}

func TestDissect(t *testing.T) {
	seen := func(f frame.Frame, state *frame.MessageState) (list []string) {
		fields, _, err := frame.Dissect(f.AppendTo(nil), state)
		require.NoError(t, err)
		for _, one := range fields {
			text := fmt.Sprintf("%d-%d %s: %s", one.From, one.To, one.Name, one.Value)
			list = append(list, strings.TrimSuffix(text, ": "))
		}
		return list
	}
	assert.Equal(t, []string{
		"0-1 kind: window", "1-2 length: 5", "2-3 lane: 3", "3-4 R: 1", "4-5 exchange: 9", "5-7 octets: 300",
	}, seen(frame.Window{Message: frame.Key{Lane: 3, Reply: true, Exchange: 9}, Octets: 300}, nil))
	assert.Equal(t, []string{
		"0-1 kind: close", "1-2 length: 10", "2-3 code: 6", "3-7 text: \"bye\"", "7-8 messages: 2", "8-12 check",
	}, seen(frame.Close{Code: frame.CloseGoingAway, Text: "bye", Messages: 2, Check: 1}, nil))

	var state frame.MessageState
	first := frame.Data{First: true, Head: true, NamesExchange: true, Exchange: 5,
		Payload: []byte{4, 2 << 1, 'h', 'd', 7, 'b', 'o', 'd', 'y'}}
	assert.Equal(t, []string{
		"0-1 bits: data, first, head", "1-2 exchange: 5", "2-3 length of the payload: 9",
		"3-4 shape number of the head: 4", "4-5 length of the head segment: 4", "5-7 head segment",
		"7-8 shape number of the body: 7", "8-12 body segment",
	}, seen(first, &state))
	assert.Equal(t, []string{
		"0-1 bits: data, last", "1-2 exchange: 5", "2-3 length of the payload: 4", "3-7 body segment",
	}, seen(frame.Data{Last: true, NamesExchange: true, Exchange: 5, Payload: []byte("more")}, &state))
	assert.Equal(t, []string{
		"0-1 bits: data, first, head", "1-2 exchange: 5", "2-3 length of the payload: 9", "3-12 payload",
	}, seen(first, nil))

	placed := frame.Data{First: true, Last: true, OneWay: true, NamesLane: true, Lane: 2, NamesExchange: true,
		Exchange: 1, Place: frame.Place{Number: 3, Answers: 2}, Payload: []byte{0, 'x'}}
	state = 0
	assert.Equal(t, []string{
		"0-1 bits: data, first, last, one-way", "1-2 lane: 2", "2-3 exchange: 1", "3-4 place: 13", "4-5 answers: 2",
		"5-6 length of the payload: 2", "6-7 shape number of the body: 0", "7-8 body segment",
	}, seen(placed, &state))
}
