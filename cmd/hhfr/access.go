package main

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// credentials are what the files of a server say of its certificate, and of whom it lets in.
type credentials struct {
	secure   *tls.Config               // nil: cleartext
	sessions func(*http.Request) error // who may have a session; nil: everybody
	contexts func(*http.Request) error // who may use the context service; nil: everybody
	files    []string                  // what was read, by flags
}

// access is who a server is, and whom it lets in. A reload replaces it as a whole, for connections
// and requests that come then.
type access struct {
	read    func() (*credentials, error)
	current atomic.Pointer[credentials]
}

// accessFlags are the flags of an access.
type accessFlags struct {
	tls  *serverTLS
	keys *os.File // of SSLKEYLOGFILE; nil: none
	// contextFlag is the name of the flag that says who may use the context service, contexts its
	// value; empty: there is no service.
	contextFlag, contexts string
}

// openAccess reads the files.
func openAccess(o accessFlags) (*access, error) {
	a := &access{read: o.read}
	first, err := a.read()
	a.current.Store(first)
	return a, err
}

func (o accessFlags) read() (c *credentials, err error) {
	c = &credentials{}
	if c.secure, err = o.tls.config(o.keys); err != nil {
		return nil, err
	}
	if c.sessions, err = o.tls.sessions(); err != nil {
		return nil, err
	}
	if o.contexts != "" {
		if c.contexts, err = contextAdmission(o.contextFlag, o.contexts, o.tls.clientCA); err != nil {
			return nil, err
		}
	}
	if c.secure != nil {
		c.files = append(c.files, certificateFile("--cert", o.tls.cert, c.secure.Certificates))
	}
	if o.tls.clientCA != "" {
		c.files = append(c.files, "--client-ca "+o.tls.clientCA)
	}
	for _, one := range [][2]string{{"--negotiate", o.tls.negotiate}, {o.contextFlag, o.contexts}} {
		if file, ok := strings.CutPrefix(one[1], "bearer:"); ok {
			c.files = append(c.files, one[0]+" "+file)
		}
	}
	return c, nil
}

// certificateFile names the file of a certificate, and says how long that is valid.
func certificateFile(flag, name string, of []tls.Certificate) string {
	end := of[0].Leaf.NotAfter
	how := "valid until"
	if time.Now().After(end) {
		how = "expired at"
	}
	return fmt.Sprintf("%s %s (%s %s)", flag, name, how, end.UTC().Format(time.RFC3339))
}

// config is the TLS of listeners; nil: cleartext. Each handshake has the credentials of its time.
func (a *access) config() *tls.Config {
	if a.current.Load().secure == nil {
		return nil
	}
	return &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return a.current.Load().secure, nil
	}}
}

// admitSession returns why the sender of a request may not have a session.
func (a *access) admitSession(r *http.Request) error { return admitBy(a.current.Load().sessions, r) }

// admitContext returns why the sender of a request may not use the context service.
func (a *access) admitContext(r *http.Request) error { return admitBy(a.current.Load().contexts, r) }

func admitBy(admit func(*http.Request) error, r *http.Request) error {
	if admit == nil {
		return nil
	}
	return admit(r)
}

// reloads returns what SIGHUP does where there are no routes: it reads the files again; nil if
// there are none. On an error nothing changes.
func (a *access) reloads(g *global) func() {
	if len(a.current.Load().files) == 0 {
		return nil
	}
	return func() {
		next, err := a.read()
		if err != nil {
			notReloaded(g, err)
			return
		}
		a.current.Store(next)
		reloadedFiles(g, next.files)
	}
}

// notReloaded reports why a reload changed nothing, and what to do.
func notReloaded(g *global, err error) {
	_, hint := codeOf(err)
	if hint == "" {
		hint = "mend that, and send SIGHUP again"
	}
	g.say("not reloaded, everything stays as it is: %s; %s", g.message(err), hint)
}

func reloadedFiles(g *global, files []string) {
	if len(files) > 0 {
		g.note("reloaded %s", strings.Join(files, ", "))
	}
}
