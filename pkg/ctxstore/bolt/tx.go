package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"time"

	"go.etcd.io/bbolt"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/internal/engine"
)

// The buckets of a file, and the keys in meta.
var (
	metaBucket    = []byte("meta")
	entriesBucket = []byte("entries") // URI: record and value
	usesBucket    = []byte("uses")    // URI of a shape: when it was last used, on the file's counter
	formatKey     = []byte("format")
	revisionKey   = []byte("revision") // last revision given to a mutable entry
	octetsKey     = []byte("octets")   // length of all URIs and values
	useKey        = []byte("use")      // the counter of uses
)

// format is the version of the file format.
const format = 1

// recordSize is the length of a record, in bytes: revision, expiry as seconds and nanoseconds,
// check.
const recordSize = 8 + 8 + 4 + 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// record precedes each value.
type record struct {
	revision uint64
	expires  time.Time // zero: never
	sum      uint32    // CRC-32C of the value
}

func (r record) appendTo(b []byte) []byte {
	var seconds, nanos uint64
	if !r.expires.IsZero() {
		seconds, nanos = uint64(r.expires.Unix()), uint64(r.expires.Nanosecond())
	}
	b = binary.BigEndian.AppendUint64(b, r.revision)
	b = binary.BigEndian.AppendUint64(b, seconds)
	b = binary.BigEndian.AppendUint32(b, uint32(nanos))
	return binary.BigEndian.AppendUint32(b, r.sum)
}

func parseRecord(b []byte) (r record, value []byte, err error) {
	if len(b) < recordSize {
		return r, nil, fmt.Errorf("%d bytes, a record has %d", len(b), recordSize)
	}
	r.revision = binary.BigEndian.Uint64(b)
	if seconds := binary.BigEndian.Uint64(b[8:]); seconds != 0 {
		r.expires = time.Unix(int64(seconds), int64(binary.BigEndian.Uint32(b[16:]))).UTC()
	}
	r.sum = binary.BigEndian.Uint32(b[20:])
	return r, b[recordSize:], nil
}

func (r *record) check(uri string, value []byte) error {
	if crc32.Checksum(value, castagnoli) != r.sum {
		return &ctxstore.Error{
			Code: ctxstore.Corrupt,
			URI:  uri,
			Err:  errors.New("its check is wrong"),
			Hint: "delete the entry, or restore the file from a copy",
		}
	}
	return nil
}

func (r *record) info(uri string, value []byte) ctxstore.Info {
	return ctxstore.Info{URI: uri, Revision: r.revision, Size: int64(len(value)), Expires: r.expires}
}

// tx is one transaction.
type tx struct {
	file                *sharedFile
	cfg                 Config
	meta, entries, uses *bbolt.Bucket
}

// find returns an entry; nil if there is none. The value is valid within the transaction.
func (t *tx) find(uri string) (*record, []byte, error) {
	b := t.entries.Get([]byte(uri))
	if b == nil {
		return nil, nil, nil
	}
	r, value, err := parseRecord(b)
	if err != nil {
		return nil, nil, corrupt(uri, t.file.path, err)
	}
	return &r, value, nil
}

// Find implements [engine.Txn].
func (t *tx) Find(uri string) (ctxstore.Info, error) {
	r, value, err := t.find(uri)
	if r == nil {
		return ctxstore.Info{}, err
	}
	return r.info(uri, value), nil
}

// Set implements [engine.Txn].
func (t *tx) Set(uri string, value []byte, expires time.Time) (uint64, error) {
	r := record{revision: 1, expires: expires}
	_, shape := ctxstore.ParseShapeURI(uri)
	if !shape {
		r.revision = number(t.meta, revisionKey) + 1
		if err := t.setNumber(revisionKey, r.revision); err != nil {
			return 0, err
		}
	}
	if err := t.makeRoom(uri, int64(len(uri)+len(value))); err != nil {
		return 0, err
	}
	if err := t.Remove(uri); err != nil {
		return 0, err
	}
	r.sum = crc32.Checksum(value, castagnoli)
	b := r.appendTo(make([]byte, 0, recordSize+len(value)))
	if err := t.entries.Put([]byte(uri), append(b, value...)); err != nil {
		return 0, err
	}
	if shape {
		t.file.touch(uri)
	}
	return r.revision, t.setNumber(octetsKey, number(t.meta, octetsKey)+uint64(len(uri)+len(value)))
}

// Remove implements [engine.Txn].
func (t *tx) Remove(uri string) error {
	b := t.entries.Get([]byte(uri))
	if b == nil {
		return nil
	}
	octets := number(t.meta, octetsKey)
	octets -= min(octets, uint64(room(uri, b)))
	return errors.Join(t.entries.Delete([]byte(uri)), t.uses.Delete([]byte(uri)), t.setNumber(octetsKey, octets))
}

func (t *tx) setNumber(key []byte, n uint64) error {
	return t.meta.Put(key, binary.BigEndian.AppendUint64(nil, n))
}

// room returns how much of the limit an entry takes, in bytes.
func room(uri string, stored []byte) int64 {
	return int64(len(uri) + max(len(stored)-recordSize, 0))
}

// makeRoom makes space for an entry of need bytes at uri. It drops expired entries, then shapes.
func (t *tx) makeRoom(uri string, need int64) error {
	if old := t.entries.Get([]byte(uri)); old != nil {
		need -= room(uri, old)
	}
	space := engine.Space{At: t.file.path, URI: uri, Max: t.cfg.MaxBytes, Need: need,
		Hint: "delete contexts, or name another file"}
	if space.Fits(int64(number(t.meta, octetsKey))) {
		return nil
	}
	var shapes []engine.Shape
	var gone []string
	var others int64
	noted := t.file.noted()
	err := t.entries.ForEach(func(k, b []byte) error {
		u, octets := string(k), room(string(k), b)
		r, _, err := parseRecord(b)
		switch _, isShape := ctxstore.ParseShapeURI(u); {
		case isShape && u != uri:
			shapes = append(shapes, engine.Shape{Name: u, Size: octets, Used: int64(max(number(t.uses, k), noted[u]))})
		case u != uri && err == nil && engine.Expired(t.cfg.Clock, r.expires):
			gone = append(gone, u)
		default:
			others += octets
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = space.Make(others, shapes, func(s engine.Shape) bool {
		gone = append(gone, s.Name)
		return true
	})
	if err != nil {
		return err
	}
	for _, u := range gone {
		if err := t.Remove(u); err != nil {
			return err
		}
	}
	return nil
}

// noted returns a copy of the uses that are not in the file yet.
func (f *sharedFile) noted() map[string]uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.touched)
}

// flush writes the recorded uses into the file. Those of a transaction that fails in the end are
// lost, which only makes the choice of shapes to drop less good.
func (t *tx) flush() error {
	touched, use := t.file.takeTouched()
	if len(touched) == 0 {
		return nil
	}
	for u, n := range touched {
		if t.entries.Get([]byte(u)) == nil {
			continue
		}
		if err := t.uses.Put([]byte(u), binary.BigEndian.AppendUint64(nil, n)); err != nil {
			return err
		}
	}
	return t.setNumber(useKey, use)
}

// list returns the entries under prefix, ordered by URI, and the errors for those that could
// not be read.
func (t *tx) list(prefix string) (list []ctxstore.Info, failed []error) {
	c := t.entries.Cursor()
	for k, b := c.Seek([]byte(prefix)); k != nil && bytes.HasPrefix(k, []byte(prefix)); k, b = c.Next() {
		r, value, err := parseRecord(b)
		if err != nil {
			failed = append(failed, corrupt(string(k), t.file.path, err))
			continue
		}
		list = append(list, r.info(string(k), value))
	}
	return list, failed
}
