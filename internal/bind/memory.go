package bind

import (
	"reflect"
	"unsafe"
)

// All use of unsafe is in this file. Offsets and types are those that reflection has of the struct that a
// program was compiled from, and the generic functions of the package take no other.

// address is where a value is.
type address = unsafe.Pointer

func pointer[T any](v *T) address { return address(v) }

// as is the value at an address, of the type that it has there, or of the basic type below that.
func as[T any](at address) *T { return (*T)(at) }

func (f *field) in(record address) address { return unsafe.Add(record, f.offset) }

// slice is how slices are in memory.
type slice struct {
	first    address
	len, cap int
}

func (s *slice) item(i int, size uintptr) address { return unsafe.Add(s.first, uintptr(i)*size) }

// firstItems is how many items there is space for in a list that has one.
const firstItems = 4

// grow adds an item to a list, and returns where it is; it is zero.
func (f *field) grow(list address) address {
	s := as[slice](list)
	if s.len == s.cap {
		// Lists grow by as much again as they have, so that this is rare.
		reflect.NewAt(f.list, list).Elem().Grow(max(firstItems-s.cap, 1))
	}
	s.len++
	return s.item(s.len-1, f.size)
}

// allocate makes a value of the field's type, which is zero.
func (f *field) allocate() address { return reflect.New(f.typ).UnsafePointer() }

// boxed is the pointer to a value at an address, as an interface.
func boxed(t reflect.Type, at address) any { return reflect.NewAt(t, at).Interface() }
