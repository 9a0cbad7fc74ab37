package proxy

import "net"

// patient writes to a connection whose other end may be slow, but not stand still: one that takes longer than Stall for a piece has its connection reset.
type patient struct {
	p    *Proxy
	conn net.Conn
}

func (p *Proxy) patient(conn net.Conn) patient { return patient{p, conn} }

// Write writes in pieces, each of which has its time.
func (w patient) Write(b []byte) (n int, err error) {
	for len(b) > 0 {
		piece := b[:min(len(b), stallStep)]
		timer := w.p.cfg.Clock.AfterFunc(w.p.cfg.Stall, func() {
			w.p.cfg.Log.Warn("an end does not take what is written", "peer", w.conn.RemoteAddr(), "for", w.p.cfg.Stall)
			reset(w.conn)
		})
		k, err := w.conn.Write(piece)
		timer.Stop()
		if n += k; err != nil {
			return n, err
		}
		b = b[k:]
	}
	return n, nil
}
