package trust

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/wscontext"
)

// credentials are what the files of a server say of its certificate, and of whom it lets in.
type credentials struct {
	secure   *tls.Config               // nil: cleartext
	sessions func(*http.Request) error // who may have a session; nil: everybody
	contexts func(*http.Request) error // who may use the context service; nil: everybody
	Files    []string                  // what was read, by flags
}

// Access is who a server is, and whom it lets in. A reload replaces it as a whole, for connections
// and requests that come then.
type Access struct {
	Read    func() (*credentials, error)
	Current atomic.Pointer[credentials]
}

// AccessFlags are the flags of an access.
type AccessFlags struct {
	TLS  *ServerTLS
	Keys *KeyWriter // nil: none
	// contextFlag is the name of the flag that says who may use the context service, contexts its
	// value; empty: there is no service.
	ContextFlag, Contexts string
}

// OpenAccess reads the files.
func OpenAccess(o AccessFlags) (*Access, error) {
	a := &Access{Read: o.read}
	first, err := a.Read()
	a.Current.Store(first)
	return a, err
}

func (o AccessFlags) read() (c *credentials, err error) {
	c = &credentials{}
	if c.secure, err = o.TLS.config(o.Keys); err != nil {
		return nil, err
	}
	if c.sessions, err = o.TLS.sessions(); err != nil {
		return nil, err
	}
	if o.Contexts != "" {
		if c.contexts, err = contextAdmission(o.ContextFlag, o.Contexts, o.TLS.ClientCA); err != nil {
			return nil, err
		}
	}
	if c.secure != nil {
		c.Files = append(c.Files, certificateFile("--cert", o.TLS.Cert, c.secure.Certificates))
	}
	if o.TLS.ClientCA != "" {
		c.Files = append(c.Files, "--client-ca "+o.TLS.ClientCA)
	}
	for _, one := range [][2]string{{"--negotiate", o.TLS.Negotiate}, {o.ContextFlag, o.Contexts}} {
		if file, ok := strings.CutPrefix(one[1], "bearer:"); ok {
			c.Files = append(c.Files, one[0]+" "+file)
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

// Config is the TLS of listeners; nil: cleartext. Each handshake has the credentials of its time.
func (a *Access) Config() *tls.Config {
	if a.Current.Load().secure == nil {
		return nil
	}
	return &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return a.Current.Load().secure, nil
	}}
}

// AdmitSession returns why the sender of a request may not have a session.
func (a *Access) AdmitSession(r *http.Request) error { return admitBy(a.Current.Load().sessions, r) }

// admitContext returns why the sender of a request may not use the context service.
func (a *Access) admitContext(r *http.Request) error { return admitBy(a.Current.Load().contexts, r) }

func admitBy(admit func(*http.Request) error, r *http.Request) error {
	if admit == nil {
		return nil
	}
	return admit(r)
}

// Reloads returns what SIGHUP does where there are no routes: it reads the files again; nil if
// there are none. On an error nothing changes.
func (a *Access) Reloads(g *command.Global) func() {
	if len(a.Current.Load().Files) == 0 {
		return nil
	}
	return func() {
		next, err := a.Read()
		if err != nil {
			NotReloaded(g, err)
			return
		}
		a.Current.Store(next)
		ReloadedFiles(g, next.Files)
	}
}

// NotReloaded reports why a reload changed nothing, and what to do.
func NotReloaded(g *command.Global, err error) {
	_, hint := exit.CodeOf(err)
	if hint == "" {
		hint = "mend that, and send SIGHUP again"
	}
	g.Say("not reloaded, everything stays as it is: %s; %s", g.Message(err), hint)
}

// ReloadedFiles reports which files a reload has read.
func ReloadedFiles(g *command.Global, files []string) {
	if len(files) > 0 {
		g.Note("reloaded %s", strings.Join(files, ", "))
	}
}

// NewContextService is the service of a store, for those whom an access admits.
func NewContextService(
	store ctxstore.Store, who *Access, readOnly bool, log *slog.Logger,
) (*wscontext.ContextService, error) {
	return wscontext.New(wscontext.Config{Store: store, Admit: who.admitContext, ReadOnly: readOnly, Log: log})
}

// contextAdmission decides by the value of a flag who may use a context service; nil: everybody.
func contextAdmission(flag, who, clientCA string) (func(*http.Request) error, error) {
	if who == "loopback" {
		return wscontext.AdmitLoopback, nil
	}
	return admission(flag, who, clientCA, "loopback")
}
