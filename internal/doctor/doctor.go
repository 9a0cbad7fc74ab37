// Package doctor looks at what of hhfr works on a machine: above all on a phone, in Termux, where
// names, certificates, interfaces, locks and clocks are not as elsewhere.
package doctor

import (
	"context"
	"crypto/x509"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/hhfr/hhfr/internal/engines"
	"github.com/hhfr/hhfr/internal/experiment"
	"github.com/hhfr/hhfr/internal/resolve"
)

// Health is how it stands with one thing.
type Health string

// The states.
const (
	Works   Health = "works"
	Limited Health = "limited" // it works, but not as well as elsewhere, or nobody can know
	Fails   Health = "fails"
)

// Finding is what was found of one thing.
type Finding struct {
	Name   string `json:"name"`             // of the thing: build, names, certificates and so on
	State  Health `json:"state"`            // works, limited or fails
	Found  string `json:"found"`            // for people
	Advice string `json:"advice,omitempty"` // what to do
}

// Device is the machine that is looked at. Tests simulate others.
type Device struct {
	Names resolve.System
	DNS   netip.AddrPort // of --dns; none: the system's
	// Host is looked up; empty: nothing is.
	Host string
	// Roots are the certificates that the program trusts.
	Roots func() (*x509.CertPool, error)
	// Root is the file system.
	Root fs.FS
	// Env is the environment.
	Env func(name string) string
	// Interfaces, Lookup and Listen are those of package net.
	Interfaces func() ([]net.Interface, error)
	Lookup     func(ctx context.Context, host string) ([]string, error)
	Listen     func(network, address string) error
	// States is the folder for what stays.
	States string
	// Late is how much later than it should a wait of a millisecond ends.
	Late func() time.Duration
}

// Local is the machine that the program runs on.
func Local(names resolve.System, roots func() (*x509.CertPool, error), states string) Device {
	return Device{
		Names: names, Roots: roots, Root: os.DirFS("/"), Env: os.Getenv, States: states,
		Interfaces: net.Interfaces, Lookup: net.DefaultResolver.LookupHost, Listen: listen, Late: late,
	}
}

// Look looks at everything, in a second or so. Beyond Host nothing leaves the machine.
func (s Device) Look(ctx context.Context) []Finding {
	c := experiment.Describe(s.Root, "")
	return []Finding{
		s.build(), s.names(ctx), s.certificates(), s.interfaces(), s.ports(), s.store(ctx),
		s.rest(), clockSpeed(s.Root, c), heat(c), power(c),
	}
}

// build: Go's runtime avoids the system calls that Android forbids only in the android build.
func (s Device) build() Finding {
	f := Finding{Name: "build", State: Works, Found: s.Names.GOOS + "/" + runtime.GOARCH}
	if s.Names.GOOS == "linux" && s.Names.Android() {
		f.State, f.Found = Limited, "the linux build on Android"
		f.Advice = "take the android build: Android ends programs that use some calls of Linux"
	}
	return f
}

func (s Device) names(ctx context.Context) Finding {
	f := Finding{Name: "names", State: Works, Found: "by the system's resolver"}
	switch {
	case s.DNS.IsValid():
		f.Found = "by " + s.DNS.String() + ", as --dns says"
	case s.Names.Android():
		f.Found = "by Android's resolver, or Termux's resolv.conf"
	}
	if s.Host == "" {
		f.Found += "; none was looked up"
		return f
	}
	found, err := s.Lookup(ctx, s.Host)
	if err != nil {
		f.State, f.Found = Fails, s.Names.Message(err, s.DNS)
		f.Advice = "name a server that this network reaches: --dns IP"
		return f
	}
	f.Found = fmt.Sprintf("%s is %s, %s", s.Host, strings.Join(found, ", "), f.Found)
	return f
}

func (s Device) certificates() Finding {
	f := Finding{Name: "certificates", State: Works, Found: "authorities of the system"}
	for _, name := range []string{"SSL_CERT_FILE", "SSL_CERT_DIR"} {
		if at := s.Env(name); at != "" {
			f.Found = name + "=" + at
		}
	}
	pool, err := s.Roots()
	switch {
	case err != nil:
		f.State, f.Found = Fails, err.Error()
	case pool == nil || pool.Equal(x509.NewCertPool()):
		f.State, f.Found = Fails, "no authority is trusted"
	}
	if f.State == Fails {
		f.Advice = "pkg install ca-certificates in Termux; elsewhere --cacert FILE or SSL_CERT_FILE"
	}
	return f
}

// interfaces cannot be listed by apps since Android 11. hhfr binds by address, and needs no list.
func (s Device) interfaces() Finding {
	f := Finding{Name: "interfaces", State: Works}
	list, err := s.Interfaces()
	if err != nil {
		f.State, f.Found = Limited, "cannot be listed: "+err.Error()
		f.Advice = "none: hhfr takes addresses, and needs no list; Wi-Fi settings show this phone's"
		return f
	}
	var names []string
	for _, i := range list {
		if i.Flags&net.FlagUp != 0 {
			names = append(names, i.Name)
		}
	}
	f.Found = strings.Join(names, ", ")
	return f
}

func (s Device) ports() Finding {
	f := Finding{Name: "ports", State: Works}
	var works, fails []string
	for _, network := range []string{"tcp4", "udp4", "tcp6"} {
		address := "127.0.0.1:0"
		if network == "tcp6" {
			address = "[::1]:0"
		}
		if err := s.Listen(network, address); err != nil {
			fails = append(fails, fmt.Sprintf("%s: %v", network, err))
		} else {
			works = append(works, network)
		}
	}
	f.Found = told("listens at "+strings.Join(works, ", "), fails)
	switch {
	case len(works) == 0:
		f.State = Fails
		f.Found = strings.Join(fails, "; ")
		f.Advice = "give the app the right to use the network"
	case len(fails) > 0:
		f.State = Limited
	}
	return f
}

// store: a file system without locks, as shared storage of Android, has none.
func (s Device) store(ctx context.Context) Finding {
	f := Finding{Name: "store", State: Works}
	fail := func(what string, err error) Finding {
		f.State, f.Found = Fails, fmt.Sprintf("%s: %v", what, err)
		f.Advice = "--store NAME in a folder of the app, as $HOME is: shared storage of Android has no locks"
		return f
	}
	if err := os.MkdirAll(s.States, 0o700); err != nil {
		return fail("no folder for states", err)
	}
	dir, err := os.MkdirTemp(s.States, "doctor-")
	if err != nil {
		return fail("no folder for states", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	begun := time.Now()
	for _, spec := range []string{"bolt:" + filepath.Join(dir, "store.db"), filepath.Join(dir, "store")} {
		store, err := engines.Open(ctx, spec, engines.Options{})
		if err != nil {
			return fail("a store cannot be opened", err)
		}
		if err = store.Close(); err != nil {
			return fail("a store cannot be closed", err)
		}
	}
	f.Found = fmt.Sprintf("stores in %s; %.0f ms to make two", s.States,
		float64(time.Since(begun).Microseconds())/1000)
	return f
}

// rest is what a phone does to programs behind its screen.
func (s Device) rest() Finding {
	const much = 20 * time.Millisecond
	f := Finding{Name: "clock", State: Works}
	by := s.Late()
	f.Found = fmt.Sprintf("waits of 1 ms end up to %.1f ms late", float64(by.Microseconds())/1000)
	if by > much {
		f.State = Limited
		f.Advice = "switch the screen on, and battery saving off"
	}
	if s.Names.Android() {
		if f.State == Works {
			f.State = Limited
			f.Found += "; nobody can see whether there is a wake lock"
		}
		f.Advice = strings.TrimPrefix(f.Advice+"; termux-wake-lock before long runs, and leave Termux out of "+
			"battery optimization", "; ")
	}
	return f
}

// clockSpeed is how fast the processor may run.
func clockSpeed(root fs.FS, c experiment.Computer) Finding {
	f := Finding{Name: "processor", State: Works, Found: fmt.Sprintf("%d processors", c.Processors)}
	if c.MHz > 0 {
		f.Found += fmt.Sprintf(", at %.0f MHz now", c.MHz)
	}
	if c.MaxMHz > 0 {
		f.Found += fmt.Sprintf(", %.0f at most", c.MaxMHz)
	}
	governor, _ := fs.ReadFile(root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
	switch g := strings.TrimSpace(string(governor)); g {
	case "":
	case "powersave":
		f.State, f.Found = Limited, f.Found+", governor powersave"
		f.Advice = "figures will be those of the lowest clock"
	default:
		f.Found += ", governor " + g
	}
	return f
}

// heat makes phones slow.
func heat(c experiment.Computer) Finding {
	const hot = 45
	f := Finding{Name: "heat", State: Works, Found: "not told"}
	if c.Celsius == nil {
		return f
	}
	f.Found = fmt.Sprintf("%.0f °C", *c.Celsius)
	if *c.Celsius >= hot && c.BatteryPercent != nil { // servers may be as hot as they like
		f.State, f.Advice = Limited, "let the phone cool: hot ones lower their clock"
	}
	return f
}

// power: a phone on mains had twice the rate of one on battery in the phones study.
func power(c experiment.Computer) Finding {
	f := Finding{Name: "power", State: Works, Found: "no battery, or not told"}
	if c.BatteryPercent == nil {
		return f
	}
	f.Found = fmt.Sprintf("battery at %.0f %%", *c.BatteryPercent)
	if c.Charging != nil && *c.Charging {
		f.Found += ", charging"
		return f
	}
	f.State, f.Advice = Limited, "connect the charger: on battery phones are slower"
	return f
}

// told appends what fails to what works.
func told(works string, fails []string) string {
	return strings.Join(append([]string{works}, fails...), "; ")
}

// listen listens at an address, and ends that.
func listen(network, address string) error {
	if strings.HasPrefix(network, "udp") {
		c, err := net.ListenPacket(network, address)
		if err != nil {
			return err
		}
		return c.Close()
	}
	l, err := net.Listen(network, address)
	if err != nil {
		return err
	}
	return l.Close()
}

// late is the longest delay of some short waits.
func late() (most time.Duration) {
	const waits, wait = 50, time.Millisecond
	for range waits {
		begun := time.Now()
		time.Sleep(wait)
		most = max(most, time.Since(begun)-wait)
	}
	return most
}
