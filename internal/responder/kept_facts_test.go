package responder

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/negotiate"
)

// Facts are kept with all that is in them, whatever it is.
func TestKeptFacts(t *testing.T) {
	set := func(f reflect.Value) {
		switch v := f.Addr().Interface().(type) {
		case *negotiate.SessionID:
			*v = negotiate.NewSessionID()
		case *string:
			*v = "some " + f.String()
		case *bool:
			*v = true
		case *[]string:
			*v = []string{"<a/>"}
		case **negotiate.Common:
			*v = &negotiate.Common{}
		case *time.Time:
			*v = time.Unix(1e9, 0)
		case *[][32]byte:
			*v = [][32]byte{{1}}
		default:
			require.Fail(t, "a field of another type", "%T", v)
		}
	}
	var all, most negotiate.Facts
	for i := range reflect.TypeFor[negotiate.Facts]().NumField() {
		name := reflect.TypeFor[negotiate.Facts]().Field(i).Name
		var one negotiate.Facts
		set(reflect.ValueOf(&one).Elem().Field(i))
		set(reflect.ValueOf(&all).Elem().Field(i))
		if k := keep(&one); k.whole == nil {
			set(reflect.ValueOf(&most).Elem().Field(i))
		}
		k := keep(&one)
		assert.Equal(t, one, k.facts(), name)
	}
	for _, f := range []negotiate.Facts{all, most, {}} {
		k := keep(&f)
		assert.Equal(t, f, k.facts())
	}
	k := keep(&most)
	assert.Nil(t, k.whole)
}
