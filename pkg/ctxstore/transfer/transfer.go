// Package transfer writes the entries of a context store to a file, and puts them into another
// (docs/context.md, section 5). The file has a line of JSON for each entry, one before them that
// says what it is, and one behind them, so that a file that was cut is noticed.
package transfer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// fileVersion is the version of the file.
const fileVersion = 1

// maxLine is the longest line, in bytes: the longest value in base64 and the longest URI, of
// which each character may be escaped.
const maxLine = ctxstore.MaxValue/3*4 + 6*ctxstore.MaxURI + 1024

// exportLine is one of the file: the first one has Contexts, the last one Entries, all others an
// entry.
type exportLine struct {
	Contexts int        `json:"contexts,omitempty"` // version of the file
	URI      string     `json:"uri,omitempty"`
	Expires  *time.Time `json:"expires,omitempty"`
	Value    []byte     `json:"value_base64,omitempty"`
	Entries  *int       `json:"entries,omitempty"` // how many there were
}

// Export writes the entries whose URI begins with prefix, but for those by which users hold others.
// An entry that cannot be read is reported to skipped, and left out. It returns how many were
// written.
func Export(ctx context.Context, w io.Writer, from ctxstore.Store, prefix string,
	skipped func(error)) (n int, err error) {
	out := bufio.NewWriter(w)
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	if err := e.Encode(exportLine{Contexts: fileVersion}); err != nil {
		return 0, err
	}
	for i, err := range from.List(ctx, prefix) {
		var entry ctxstore.Entry
		if err == nil {
			if strings.HasPrefix(i.URI, ctxstore.HoldPrefix) {
				continue
			}
			entry, err = from.Get(ctx, i.URI)
		}
		switch {
		case errors.Is(err, ctxstore.NotFound): // deleted meanwhile, or expired
			continue
		case errors.Is(err, ctxstore.Corrupt):
			skipped(err)
			continue
		case err != nil:
			return n, err
		}
		l := exportLine{URI: i.URI, Value: entry.Value}
		if !entry.Expires.IsZero() {
			l.Expires = &entry.Expires
		}
		if err := e.Encode(l); err != nil {
			return n, err
		}
		n++
	}
	if err := e.Encode(exportLine{Entries: &n}); err != nil {
		return n, err
	}
	return n, out.Flush()
}

// Imported is what became of the entries of a file.
type Imported struct {
	Stored    int `json:"stored"`    // put into the store
	Unchanged int `json:"unchanged"` // there already, with this value
	Kept      int `json:"kept"`      // there already with another value, which was to stay
	Expired   int `json:"expired"`   // no longer valid
}

// ImportOptions say how entries are put into a store. The zero value replaces those that are there.
type ImportOptions struct {
	// Keep keeps entries that are in the store already.
	Keep bool
	// Clock is the clock of the store; nil means the machine's.
	Clock clock.Clock
}

// FileError says that a file is none that Export wrote, and where.
type FileError struct {
	Line int
	Cut  bool // it ends too early: what is there was imported
	Err  error
}

func (e *FileError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

// Import puts the entries of a file into a store. Whenever it ends, each entry in the store is
// whole; done again, it goes on. Errors: [FileError], and those of the store.
func Import(ctx context.Context, to ctxstore.Store, r io.Reader, o ImportOptions) (Imported, error) {
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	in := importer{to: to, o: o}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for number := 1; lines.Scan(); number++ {
		if ctx.Err() != nil {
			return in.done, context.Cause(ctx)
		}
		end, err := in.line(ctx, number, lines.Bytes())
		if err != nil || end {
			return in.done, err
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return in.done, &FileError{in.at + 1, false, fmt.Errorf("longer than %d bytes", maxLine)}
	} else if err != nil {
		return in.done, err
	}
	return in.done, &FileError{in.at + 1, true, errors.New("the file ends before its last line")}
}

type importer struct {
	to   ctxstore.Store
	o    ImportOptions
	done Imported
	seen int // entries
	at   int // line
}

// line imports a line; end reports whether it is the last one.
func (in *importer) line(ctx context.Context, number int, text []byte) (end bool, err error) {
	var l exportLine
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err = d.Decode(&l)
	fail := func(err error) (bool, error) { return false, &FileError{number, false, err} }
	in.at = number
	switch {
	case number == 1 && (err != nil || l.Contexts == 0):
		return fail(errors.New("not a file of contexts"))
	case errors.Is(err, io.ErrUnexpectedEOF):
		return false, &FileError{number, true, errors.New("the file ends in the middle of a line")}
	case err != nil:
		return fail(err)
	case number == 1 && l.Contexts != fileVersion:
		return fail(fmt.Errorf("version %d, only %d is known", l.Contexts, fileVersion))
	case number == 1:
		return false, nil
	case l.Entries != nil && *l.Entries != in.seen:
		return fail(fmt.Errorf("%d entries were written, %d are here", *l.Entries, in.seen))
	case l.Entries != nil:
		return true, nil
	}
	in.seen++
	if err := in.entry(ctx, l); errors.Is(err, ctxstore.Invalid) {
		return fail(err)
	} else {
		return false, err
	}
}

func (in *importer) entry(ctx context.Context, l exportLine) error {
	var opt ctxstore.PutOptions
	if l.Expires != nil {
		if opt.TTL = l.Expires.Sub(in.o.Clock.Now()); opt.TTL <= 0 {
			in.done.Expired++
			return nil
		}
	}
	if err := ctxstore.CheckPut(l.URI, l.Value, opt); err != nil {
		return err
	}
	have, err := in.to.Get(ctx, l.URI)
	switch {
	case errors.Is(err, ctxstore.NotFound),
		errors.Is(err, ctxstore.Corrupt): // it is healed
	case err != nil:
		return err
	case bytes.Equal(have.Value, l.Value) && sameTime(have.Expires, l.Expires):
		in.done.Unchanged++
		return nil
	case in.o.Keep:
		in.done.Kept++
		return nil
	}
	if _, err := in.to.Put(ctx, l.URI, l.Value, opt); err != nil {
		return err
	}
	in.done.Stored++
	return nil
}

// sameTime reports whether two times of expiry are the same but for the time that a Put takes.
func sameTime(have time.Time, want *time.Time) bool {
	if have.IsZero() || want == nil {
		return have.IsZero() && want == nil
	}
	return have.Sub(*want).Abs() < time.Second
}
