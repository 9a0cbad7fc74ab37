package bind

import (
	"reflect"
	"unsafe"
)

// All use of unsafe is in this file. Offsets and types are those that reflection has of the struct
// that a program was compiled from, and the generic functions of the package take no other.

// ptr is where a value is.
type ptr = unsafe.Pointer

func pointer[T any](v *T) ptr { return ptr(v) }

// as is the value at an ptr, of the type that it has there, or of the basic type below that.
func as[T any](at ptr) *T { return (*T)(at) }

func (f *field) in(record ptr) ptr { return unsafe.Add(record, f.offset) }

// slice is how slices are in memory.
type slice struct {
	first    ptr
	len, cap int
}

func (s *slice) item(i int, size uintptr) ptr { return unsafe.Add(s.first, uintptr(i)*size) }

// firstItems is how many items there is space for in a list that has one.
const firstItems = 4

// grow adds an item to a list, and returns where it is; it is zero.
func (f *field) grow(list ptr) ptr {
	s := as[slice](list)
	if s.len == s.cap {
		// Lists grow by as much again as they have, so that this is rare.
		reflect.NewAt(f.list, list).Elem().Grow(max(firstItems-s.cap, 1))
	}
	s.len++
	return s.item(s.len-1, f.size)
}

// allocate makes a value of the field's type, which is zero.
func (f *field) allocate() ptr { return reflect.New(f.typ).UnsafePointer() }

// boxed is the pointer to a value at an ptr, as an interface.
func boxed(t reflect.Type, at ptr) any { return reflect.NewAt(t, at).Interface() }
