package fault_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/internal/fault"
)

type color uint8

func (c color) String() string { return [...]string{"red", "green"}[c] }

func (color) From() string { return "lamp: " }

type tone uint8

func (tone) String() string { return "low" }

func (tone) From() string { return "" }

func TestOf(t *testing.T) {
	bare, caused := &fault.Of[color]{Code: 0}, &fault.Of[color]{Code: 1, Err: io.EOF}
	assert.EqualError(t, bare, "lamp: red")
	assert.EqualError(t, caused, "lamp: green: EOF")
	assert.EqualError(t, &fault.Of[tone]{Err: io.EOF}, "low: EOF")

	wrapped := fmt.Errorf("outer: %w", caused)
	assert.ErrorIs(t, wrapped, &fault.Of[color]{Code: 1})
	assert.ErrorIs(t, wrapped, io.EOF)
	assert.NotErrorIs(t, wrapped, &fault.Of[color]{Code: 0})
	assert.NotErrorIs(t, wrapped, &fault.Of[tone]{Code: 1}, "a code of another package")
	assert.NoError(t, errors.Unwrap(bare))
}

func TestAt(t *testing.T) {
	bare, caused := &fault.At[tone]{At: 1 << 40}, &fault.At[color]{Code: 1, At: 2, Err: io.EOF}
	assert.EqualError(t, bare, "offset 1099511627776: low")
	assert.EqualError(t, caused, "offset 2: green: EOF")

	wrapped := fmt.Errorf("outer: %w", caused)
	assert.ErrorIs(t, wrapped, &fault.At[color]{Code: 1, At: 3})
	assert.ErrorIs(t, wrapped, io.EOF)
	assert.NotErrorIs(t, wrapped, &fault.At[color]{Code: 0, At: 2})
	assert.NotErrorIs(t, wrapped, &fault.Of[color]{Code: 1})
	assert.NoError(t, errors.Unwrap(bare))
}
