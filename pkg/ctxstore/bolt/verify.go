package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"os"

	"go.etcd.io/bbolt"
)

// bbolt trusts its pages: a damaged one may send it around in circles, or through four billion
// pages. So the pages of a file are checked before it is used: each belongs to one tree, or to the
// free list, and is what its header says.

// The parts of a page (bbolt's format, version 2), in bytes.
const (
	headerSize  = 16 // id, flags (16 bits), count (16 bits), overflow (32 bits)
	elementSize = 16 // of a branch: position, key size, page; of a leaf: flags, position, key size, value size
	metaSize    = headerSize + 64
)

const (
	branchPage   = 0x01
	leafPage     = 0x02
	freelistPage = 0x10
	bucketFlag   = 0x01
	noFreelist   = 1<<64 - 1
	// maxCount means that the count of a free list stands before its first id.
	maxCount = 0xFFFF
)

var native = binary.NativeEndian

// openFunc is the form of [os.OpenFile].
type openFunc func(name string, flag int, mode os.FileMode) (*os.File, error)

// verify checks the pages of a file that nobody writes meanwhile. Its size is taken once the lock
// is held: another process may have grown the file until then. open opens it, before the lock.
func verify(path string, open openFunc) error {
	info, err := os.Stat(path)
	if err != nil || info.Size() == 0 {
		return nil // opening the file makes it, or reports the error
	}
	var locked *os.File
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockWait, ReadOnly: true,
		OpenFile: func(name string, flag int, mode os.FileMode) (_ *os.File, err error) {
			locked, err = open(name, flag, mode)
			return locked, err
		}})
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	if info, err = locked.Stat(); err != nil {
		return err
	}
	c := &fileChecker{file: locked, size: info.Size(), pageSize: int64(db.Info().PageSize)}
	return c.check()
}

type fileChecker struct {
	file     io.ReaderAt
	size     int64
	pageSize int64
	high     uint64 // above all pages in use
	used     []bool // by the id of a page
	free     [][]byte
}

// meta is the content of a meta page.
type meta struct{ root, freelist, high, transaction uint64 }

// page is the header of a page, with the page itself, without its overflow pages.
type page struct {
	id       uint64
	flags    uint16
	count    int
	overflow uint64
	whole    []byte
}

func (c *fileChecker) check() error {
	m, err := c.meta()
	if err != nil {
		return err
	}
	c.high, c.used = m.high, make([]bool, max(2, m.high))
	c.used[0], c.used[1] = true, true
	if m.freelist != noFreelist {
		if err := c.freelist(m.freelist); err != nil {
			return err
		}
	}
	return c.tree(m.root, true, &keyOrder{})
}

// meta reads the newer of the two meta pages that bbolt accepts; bbolt checked them when it opened
// the file.
func (c *fileChecker) meta() (newest meta, err error) {
	for id := range int64(2) {
		b := make([]byte, metaSize)
		if _, err := c.file.ReadAt(b, id*c.pageSize); err != nil {
			return newest, fmt.Errorf("meta page %d: %w", id, err)
		}
		b = b[headerSize:]
		m := meta{native.Uint64(b[16:]), native.Uint64(b[32:]), native.Uint64(b[40:]), native.Uint64(b[48:])}
		if native.Uint64(b[56:]) == fnv64a(b[:56]) && m.transaction >= newest.transaction {
			newest = m
		}
	}
	if newest.high > uint64(c.size/c.pageSize) {
		return newest, fmt.Errorf("the file has %d bytes, not %d pages of %d", c.size, newest.high, c.pageSize)
	}
	return newest, nil
}

// take reads a page, and marks it and its overflow pages as used. Its content is valid until the
// page is given to leave.
func (c *fileChecker) take(id uint64) (p page, err error) {
	if id >= c.high {
		return p, fmt.Errorf("page %d is beyond the last", id)
	}
	var b []byte
	if last := len(c.free) - 1; last >= 0 {
		b, c.free = c.free[last], c.free[:last]
	} else {
		b = make([]byte, c.pageSize)
	}
	if _, err := c.file.ReadAt(b, int64(id)*c.pageSize); err != nil {
		return p, fmt.Errorf("page %d: %w", id, err)
	}
	p = page{native.Uint64(b), native.Uint16(b[8:]), int(native.Uint16(b[10:])), uint64(native.Uint32(b[12:])),
		b}
	if p.id != id || p.overflow >= c.high-id {
		return p, fmt.Errorf("page %d has no head of its own", id)
	}
	for i := id; i <= id+p.overflow; i++ {
		if c.used[i] {
			return p, fmt.Errorf("page %d is in use twice", i)
		}
		c.used[i] = true
	}
	return p, nil
}

// leave ends the use of a page's content.
func (c *fileChecker) leave(p page) { c.free = append(c.free, p.whole) }

// read returns n bytes from an offset after the header of a page, valid as its content is.
func (c *fileChecker) read(p page, at, n int64) ([]byte, error) {
	if own := p.whole[headerSize:]; at <= int64(len(own)) && n <= int64(len(own))-at {
		return own[at : at+n], nil
	}
	if room := (int64(p.overflow)+1)*c.pageSize - headerSize; at > room || n > room-at {
		return nil, fmt.Errorf("page %d states more content than it can have", p.id)
	}
	b := make([]byte, n)
	if _, err := c.file.ReadAt(b, int64(p.id)*c.pageSize+headerSize+at); err != nil {
		return nil, fmt.Errorf("page %d: %w", p.id, err)
	}
	return b, nil
}

func (c *fileChecker) freelist(id uint64) error {
	p, err := c.take(id)
	if err != nil {
		return err
	}
	defer c.leave(p)
	if p.flags != freelistPage {
		return fmt.Errorf("page %d is not a free list", id)
	}
	skip, n := int64(0), int64(p.count)
	if p.count == maxCount {
		b, err := c.read(p, 0, 8)
		if err != nil {
			return err
		}
		if skip, n = 8, int64(native.Uint64(b)); n < 0 || n > int64(c.high) {
			return fmt.Errorf("free list of %d pages", uint64(n))
		}
	}
	b, err := c.read(p, 0, skip+8*n)
	if err != nil {
		return err
	}
	for b = b[skip:]; len(b) > 0; b = b[8:] {
		id := native.Uint64(b)
		if id >= c.high || c.used[id] {
			return fmt.Errorf("page %d is free and in use, or beyond the last", id)
		}
		c.used[id] = true
	}
	return nil
}

// keyOrder checks the order of the keys of a tree: the key of a branch's element is no higher than
// those below it.
type keyOrder struct {
	key  []byte
	leaf bool // the last key is that of a leaf
}

func (o *keyOrder) next(key []byte, leaf bool) bool {
	by := bytes.Compare(key, o.key)
	ok := by > 0 || by == 0 && !o.leaf
	o.key, o.leaf = append(o.key[:0], key...), leaf
	return ok
}

// tree checks the pages of a bucket. The root has buckets for values.
func (c *fileChecker) tree(id uint64, root bool, o *keyOrder) error {
	p, err := c.take(id)
	if err != nil {
		return err
	}
	defer c.leave(p)
	if p.flags != branchPage && p.flags != leafPage {
		return fmt.Errorf("page %d does not belong to a tree", id)
	}
	all, err := c.read(p, 0, int64(p.count)*elementSize)
	if err != nil {
		return err
	}
	for i := range p.count {
		at, b := int64(i*elementSize), all[i*elementSize:]
		switch {
		case p.flags == branchPage:
			if err = c.key(p, at+int64(native.Uint32(b)), int64(native.Uint32(b[4:])), o, false); err == nil {
				err = c.tree(native.Uint64(b[8:]), root, o)
			}
		case root != (native.Uint32(b) == bucketFlag):
			err = fmt.Errorf("page %d has values among buckets, or buckets among values", id)
		default:
			at += int64(native.Uint32(b[4:]))
			err = c.leaf(p, at, at+int64(native.Uint32(b[8:])), int64(native.Uint32(b[12:])), root, o)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// leaf checks an element of a leaf, whose key is between two offsets after the page's header, and
// its value after that. A value has a check of its own; a bucket has a tree, unless it is small and
// stored in the value.
func (c *fileChecker) leaf(p page, from, to, value int64, bucket bool, o *keyOrder) error {
	if err := c.key(p, from, to-from, o, true); err != nil {
		return err
	}
	if room := (int64(p.overflow)+1)*c.pageSize - headerSize; value > room-to {
		return fmt.Errorf("page %d states more content than it can have", p.id)
	}
	if !bucket {
		return nil
	}
	b, err := c.read(p, to, headerSize)
	if err != nil || value < headerSize {
		return fmt.Errorf("page %d has an invalid bucket", p.id)
	}
	if root := native.Uint64(b); root != 0 {
		return c.tree(root, false, &keyOrder{})
	}
	return nil
}

// key checks one key after the header of a page.
func (c *fileChecker) key(p page, at, n int64, o *keyOrder, leaf bool) error {
	key, err := c.read(p, at, min(n, bbolt.MaxKeySize+1))
	switch {
	case err != nil:
		return err
	case n > bbolt.MaxKeySize || !o.next(key, leaf):
		return fmt.Errorf("page %d has keys that are not in order", p.id)
	}
	return nil
}

// fnv64a returns the checksum of a meta page.
func fnv64a(b []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(b)
	return h.Sum64()
}
