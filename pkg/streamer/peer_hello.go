package streamer

import (
	"reflect"
	"sync/atomic"

	"github.com/hhfr/hhfr/internal/frame"
)

// peerHello is the hello of the peer as long as the stream lives. What most peers say is there
// once.
type peerHello struct {
	*frame.Hello // but for what follows; never changed
	Session      [16]byte
	Word         [8]byte
}

// lastHello is what the last responder said, and the last initiator.
var lastHello [2]atomic.Pointer[frame.Hello]

// keepHello makes a hello one that is kept. It is owned from now on.
func keepHello(h frame.Hello) *peerHello {
	p := &peerHello{Session: h.Session, Word: h.Word}
	h.Session, h.Word = [16]byte{}, [8]byte{}
	if len(h.Token)+len(h.Description)+len(h.Target) > 0 {
		p.Hello = &h
		return p
	}
	last := &lastHello[0]
	if h.Responder {
		last = &lastHello[1]
	}
	if p.Hello = last.Load(); p.Hello == nil || !reflect.DeepEqual(*p.Hello, h) {
		own := h
		p.Hello = &own
		last.Store(p.Hello)
	}
	return p
}

// whole is the hello.
func (p *peerHello) whole() frame.Hello {
	h := *p.Hello
	h.Session, h.Word = p.Session, p.Word
	return h
}
