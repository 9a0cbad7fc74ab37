package link

import (
	"errors"
	"io"
	"net"
	"sync"

	"github.com/hhfr/hhfr/internal/netconn"
)

// splice joins an end of a connection, mostly the far one, to one beyond the link, until both are
// over. false: the link is closed; beyond then is, too.
func (l *Link) splice(far *linkConn, beyond net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = beyond.Close()
		return false
	}
	l.wait.Go(func() {
		var both sync.WaitGroup
		both.Go(func() { outward(far, beyond) })
		both.Go(func() { inward(far, beyond) })
		both.Wait()
		_ = far.Close()
		_ = beyond.Close()
	})
	return true
}

// outward copies what arrives over the link beyond it.
func outward(far *linkConn, beyond net.Conn) {
	_, err := io.CopyBuffer(struct{ io.Writer }{beyond}, struct{ io.Reader }{far}, make([]byte, receiveBuffer))
	// The near end is closed as a whole, or the connection beyond cannot be half-closed.
	if err != nil || far.out.abandoned() || errors.Is(netconn.CloseWrite(beyond), errors.ErrUnsupported) {
		_ = beyond.Close()
	}
}

// inward copies what arrives from beyond over the link.
func inward(far *linkConn, beyond net.Conn) {
	_, err := io.CopyBuffer(struct{ io.Writer }{far}, struct{ io.Reader }{beyond}, make([]byte, receiveBuffer))
	if err == nil {
		_ = far.CloseWrite()
		return
	}
	_ = far.Close()
	_ = beyond.Close()
}
