package directory

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hhfr/hhfr/pkg/ctxstore"
)

const (
	shapesDir   = "shapes"
	sessionsDir = "sessions"
	contextsDir = "contexts"
	holdsDir    = "holds"

	magic = "hhfr-context 1\n"
	// maxHeader is the longest header line, in bytes: a URI of which JSON writes every byte as six,
	// and the other fields.
	maxHeader = 6*ctxstore.MaxURI + 1024
	maxFile   = int64(len(magic) + maxHeader + ctxstore.MaxValue)
)

// header is the second line of a file of a mutable entry, as JSON; magic comes before it and the
// value after.
type header struct {
	URI      string    `json:"uri"`
	Revision uint64    `json:"revision"`
	Expires  time.Time `json:"expires,omitzero"`
	Size     int64     `json:"size"`
	SHA256   string    `json:"sha256"`
}

func (h header) info() ctxstore.Info {
	return ctxstore.Info{URI: h.URI, Revision: h.Revision, Size: h.Size, Expires: h.Expires}
}

// shapePath, entryPath and holdPath name files by digits only, whatever the URI is.
func (s *folderStorage) shapePath(fp [32]byte) string {
	return filepath.Join(s.dir, shapesDir, hex.EncodeToString(fp[:]))
}

func (s *folderStorage) entryPath(uri string) string {
	folder := contextsDir
	if strings.HasPrefix(uri, ctxstore.SessionPrefix) {
		folder = sessionsDir
	}
	return filepath.Join(s.dir, folder, digits(uri))
}

func (s *folderStorage) holdPath(uri string) string {
	return filepath.Join(s.dir, holdsDir, digits(uri))
}

func digits(uri string) string {
	sum := sha256.Sum256([]byte(uri))
	return hex.EncodeToString(sum[:])
}

func encode(h header, value []byte) ([]byte, error) {
	sum := sha256.Sum256(value)
	h.Size, h.SHA256 = int64(len(value)), hex.EncodeToString(sum[:])
	line, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	b := make([]byte, 0, len(magic)+len(line)+1+len(value))
	b = append(b, magic...)
	b = append(b, line...)
	b = append(b, '\n')
	return append(b, value...), nil
}

// decodeHeader reads up to the beginning of the value.
func decodeHeader(r *bufio.Reader) (h header, err error) {
	start := make([]byte, len(magic))
	if _, err := io.ReadFull(r, start); err != nil || string(start) != magic {
		return h, errors.New("does not begin like a context")
	}
	line, err := r.ReadSlice('\n')
	if err != nil {
		return h, fmt.Errorf("header: no end within %d bytes", maxHeader)
	}
	if err := json.Unmarshal(line, &h); err != nil {
		return h, fmt.Errorf("header: %w", err)
	}
	return h, nil
}

// readHeader reads the header of the file at path, without the value.
func readHeader(path string) (header, error) {
	f, err := os.Open(path)
	if err != nil {
		return header{}, fault("", path, err)
	}
	defer f.Close()
	h, err := decodeHeader(bufio.NewReaderSize(f, maxHeader))
	if err != nil {
		return h, corrupt("", path, err)
	}
	return h, nil
}

// read returns the entry of uri, even if it expired.
func (s *folderStorage) read(uri string) (header, []byte, error) {
	path := s.entryPath(uri)
	b, err := readBounded(uri, path, maxFile)
	if err != nil {
		return header{}, nil, err
	}
	r := bufio.NewReaderSize(bytes.NewReader(b), maxHeader)
	h, err := decodeHeader(r)
	if err != nil {
		return h, nil, corrupt(uri, path, err)
	}
	value := b[len(magic)+bytes.IndexByte(b[len(magic):], '\n')+1:]
	sum := sha256.Sum256(value)
	switch {
	case h.URI != uri:
		return h, nil, corrupt(uri, path, fmt.Errorf("it is the context %q", h.URI))
	case h.Size != int64(len(value)):
		return h, nil, corrupt(uri, path, fmt.Errorf("%d bytes instead of %d", len(value), h.Size))
	case h.SHA256 != hex.EncodeToString(sum[:]):
		return h, nil, corrupt(uri, path, errors.New("the checksum differs"))
	}
	return h, value, nil
}

func (s *folderStorage) readShape(uri string, fp [32]byte) ([]byte, error) {
	path := s.shapePath(fp)
	b, err := readBounded(uri, path, ctxstore.MaxValue)
	if err != nil {
		return nil, err
	}
	if sha256.Sum256(b) != fp {
		return nil, corrupt(uri, path, errors.New("the content is not the shape that its name says"))
	}
	s.used(path)
	return b, nil
}

// used records, to within an hour, that a shape is in use; it only decides which shapes are dropped
// first when space is short.
func (s *folderStorage) used(path string) {
	if s.cfg.ReadOnly {
		return
	}
	now := s.cfg.Clock.Now()
	if info, err := os.Stat(path); err == nil && now.Sub(info.ModTime()) > time.Hour {
		_ = os.Chtimes(path, now, now) // another user's file, or a file that is gone: its rank stays as it is
	}
}

// readBounded reads a regular file of at most limit bytes.
func readBounded(uri, path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fault(uri, path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fault(uri, path, err)
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return nil, corrupt(uri, path, fmt.Errorf("%v of %d bytes", info.Mode().Type(), info.Size()))
	}
	b := make([]byte, info.Size())
	if _, err := io.ReadFull(f, b); err != nil {
		return nil, corrupt(uri, path, err)
	}
	return b, nil
}
