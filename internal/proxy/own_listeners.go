package proxy

import (
	"net"
	"sync"
)

// ownListeners are the addresses of the listeners of a proxy that are open.
type ownListeners struct {
	mu  sync.Mutex
	all map[string]*net.TCPAddr
}

func (o *ownListeners) add(l net.Listener) {
	if addr, isTCP := l.Addr().(*net.TCPAddr); isTCP {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.all == nil {
			o.all = map[string]*net.TCPAddr{}
		}
		o.all[addr.String()] = addr
	}
}

func (o *ownListeners) remove(l net.Listener) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, l.Addr().String())
}

// have reports whether a connection leads to one of them.
func (o *ownListeners) have(conn net.Conn) bool {
	there, isTCP := conn.RemoteAddr().(*net.TCPAddr)
	here, alike := conn.LocalAddr().(*net.TCPAddr)
	if !isTCP || !alike {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, own := range o.all {
		if own.Port == there.Port &&
			(own.IP.Equal(there.IP) || own.IP.IsUnspecified() && here.IP.Equal(there.IP)) {
			return true
		}
	}
	return false
}
