package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/oneport"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/sock"
)

// plainOrStream forwards a connection unchanged, beginning with the bytes of the client that were
// read already. It returns when both directions have ended. For a client that has sent nothing,
// isStream, if given, waits for its first bytes, and reports whether they begin a stream of this
// proxy's: then it returns early, with the connection. why is the reason, for the meter.
func (u *plainWay) plainOrStream(
	in *sock.Source, first []byte, why string, isStream func(context.Context, *sock.Source) bool,
) (stream net.Conn) {
	p := u.p
	up, err := u.dialPlain(p.ctx)
	if err != nil {
		u.reach.failed(err)
		u.refuse(in, first, why, err)
		return nil
	}
	up = p.recorded(up)
	isHTTP := http1.LooksLikeStart(first) || http1.LooksLikeStart(in.Peek())
	defer func() { _ = up.Close() }()
	raw, leave := p.raw.begin()
	defer leave()
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	var back sync.WaitGroup
	seen := u.observed(why, in)
	defer seen.end(false)
	out := p.patient(in.Conn)
	word := &firstWord{relayedReply: relayedReply{out, seen, &u.reach}, raw: raw, clock: p.cfg.Clock}
	end := func() {
		switch isBusy := raw.isBusy(p.cfg.Clock.Now()); {
		case isBusy && isHTTP && word.take():
			_, _ = in.Conn.Write(errorReply(http.StatusBadGateway, lateText))
			_ = sock.CloseWrite(in.Conn)
		case isBusy:
			sock.Reset(in.Conn)
		default:
			_ = in.Conn.Close()
		}
		sock.Reset(up)
	}
	defer context.AfterFunc(p.late, end)()
	back.Go(func() {
		n, err := io.Copy(word, up)
		if !word.isServers() {
			return
		}
		// a server reports its verdict on a client's certificate after the handshake
		if n == 0 && session.TroubleOf(err) != 0 {
			u.reach.failed(err)
			_, _ = in.Conn.Write(unreachable(err))
			err = nil
		} else {
			seen.end(err == nil)
		}
		p.endBack(err, in, cancel)
	})
	if isStream != nil && isStream(ctx, in) && word.take() {
		_ = up.Close()
		back.Wait()
		return oneport.GiveBack(in)
	}
	to := p.patient(up)
	asked := func(b []byte) {
		raw.ask()
		seen.request(b)
	}
	if len(first) > 0 {
		asked(first)
	}
	if _, err := to.Write(first); err == nil {
		// the direction back shows how the connection ended
		if err = copyUp(ctx, up, to, in, asked); errors.Is(err, sock.ErrDismissed) {
			for raw.isBusy(p.cfg.Clock.Now()) && p.cfg.Clock.Sleep(ctx, drainStep) == nil {
			}
			end()
		}
	}
	defer out.WhenQuiet(p.cfg.Idle, func() { sock.Reset(up) })() // the client may be gone
	back.Wait()
	return nil
}

// endBack ends the direction to the client as the upstream did. The other direction may continue
// for a while: the end of one direction does not end the other.
func (p *core) endBack(err error, in *sock.Source, cancel context.CancelFunc) {
	if err != nil {
		sock.Reset(in.Conn)
		cancel()
		return
	}
	_ = sock.CloseWrite(in.Conn)
	p.cfg.Clock.AfterFunc(halfOpen, cancel)
}

// copyUp copies what a client sends until it ends, by a writer to up, and passes that end on,
// unless it is that of a source that was dismissed, which is its error.
// sent is called with the bytes before they are sent.
func copyUp(ctx context.Context, up net.Conn, to io.Writer, in *sock.Source, sent func([]byte)) error {
	for {
		data, err := in.Wait(ctx, 0, 0)
		if len(data) > 0 {
			sent(data)
			if _, err := to.Write(data); err != nil {
				return err
			}
			in.Take(len(data))
			continue
		}
		switch {
		case errors.Is(err, sock.ErrDismissed):
			return err
		case errors.Is(err, io.EOF):
			return sock.CloseWrite(up)
		}
		if ctx.Err() == nil {
			sock.Reset(up)
		}
		return err
	}
}
