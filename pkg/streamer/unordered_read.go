package streamer

import (
	"errors"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// unorderedReceiver is what the reader of an unordered stream knows besides.
type unorderedReceiver struct {
	fragments frame.Fragments
	frames    uint64       // that came behind the hello, without the close
	close     *frame.Close // waits for frames that it overtook
	octets    int          // of frames whose turn was not yet
}

// dataUnordered takes a data frame, and those that waited for it.
func (r *receiver) dataUnordered(f *frame.Data, n int) error {
	u, at := r.unordered, r.input.at
	u.octets += n
	ready, err := u.fragments.Take(*f, at)
	switch {
	case errors.Is(err, &frame.Error{Code: frame.BadSum}):
		return &Error{Code: WrongCheck, At: at, Err: err}
	case errors.Is(err, &frame.Error{Code: frame.TooLarge}):
		return &Error{Code: BeyondLimits, At: at, Err: err}
	case err != nil:
		return err
	}
	for i := range ready {
		if err := r.fragment(&ready[i], u.octets, at, u.fragments.Len()); err != nil {
			return err
		}
		u.octets = 0
	}
	return nil
}

// syncUnordered checks what a sync frame says.
func (r *receiver) syncUnordered(f frame.Sync) string {
	switch {
	case f.Word != r.s.peer.Word:
		return "sync word"
	case f.Offset != 0:
		return "offset"
	case f.Session != r.s.peer.Session:
		return "session"
	case f.Representation != r.s.peer.Representation:
		return "representation"
	case f.Stages != r.s.peer.Stages:
		return "stages"
	}
	for _, a := range f.Shapes {
		if fp, ok := r.announced[a.Number]; !ok || frame.NameOf(fp) != a.Name {
			return "a shape"
		}
	}
	return ""
}

// counted counts a frame, and closes when all have come that the close frame speaks of.
func (r *receiver) counted(f frame.Frame) error {
	u := r.unordered
	if u == nil {
		return nil
	}
	if _, ok := f.(frame.Close); !ok {
		u.frames++
	}
	if u.close == nil {
		return nil
	}
	switch {
	case u.frames < u.close.Messages:
		return nil
	case u.frames > u.close.Messages:
		return &Error{Code: WrongCheck, At: r.input.at, Err: errors.New("number of frames of the close frame differs")}
	}
	r.closeNow(*u.close)
	return nil
}

// withdraw takes a message out that its sender gave up; false if it is not open.
func (r *receiver) withdraw(k frame.Key) bool {
	if r.unordered != nil {
		return r.unordered.fragments.Cancel(k)
	}
	return r.checks.Cancel(k)
}

// heldKey says what waits together for a shape: a lane, or a message that is for itself.
func (r *receiver) heldKey(k frame.Key) frame.Key {
	if r.unordered != nil {
		return k
	}
	return frame.Key{Lane: k.Lane}
}
