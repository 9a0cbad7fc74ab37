package doctor_test

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/doctor"
	"github.com/hhfr/hhfr/internal/resolve"
	"github.com/hhfr/hhfr/internal/shared"
)

func file(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

// desktop is a machine on which everything works.
func desktop(t *testing.T) doctor.Device {
	pool := shared.NewAuthority(t).Pool()
	return doctor.Device{
		Names: resolve.System{GOOS: "linux"}, Root: fstest.MapFS{}, States: filepath.Join(t.TempDir(), "a", "b"),
		Roots: func() (*x509.CertPool, error) { return pool, nil },
		Env:   func(string) string { return "" },
		Interfaces: func() ([]net.Interface, error) {
			return []net.Interface{{Name: "lo", Flags: net.FlagUp}, {Name: "down0"}}, nil
		},
		Lookup: func(context.Context, string) ([]string, error) { return []string{"192.0.2.1"}, nil },
		Listen: func(string, string) error { return nil },
		Late:   func() time.Duration { return 100 * time.Microsecond },
	}
}

// phone is a machine with Android, and with what goes wrong there.
func phone(t *testing.T) doctor.Device {
	s := desktop(t)
	android := filepath.Join(t.TempDir(), "properties")
	require.NoError(t, os.WriteFile(android, nil, 0o600))
	s.Names = resolve.System{GOOS: "android", Properties: android, Prefix: "/prefix"}
	s.Root = fstest.MapFS{
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": file("600000"),
		"sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq": file("2800000"),
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": file("powersave\n"),
		"sys/class/thermal/thermal_zone0/temp":                 file("51000"),
		"sys/class/power_supply/battery/type":                  file("Battery"),
		"sys/class/power_supply/battery/capacity":              file("40"),
		"sys/class/power_supply/battery/status":                file("Discharging"),
	}
	s.Interfaces = func() ([]net.Interface, error) {
		return nil, &net.OpError{Op: "route", Net: "ip+net", Err: errors.New("netlinkrib: permission denied")}
	}
	return s
}

// found is what was found of one thing.
func found(t *testing.T, s doctor.Device, name string) doctor.Finding {
	for _, f := range s.Look(t.Context()) {
		if f.Name == name {
			return f
		}
	}
	require.Fail(t, "nothing was found", name)
	return doctor.Finding{}
}

func TestEverythingWorks(t *testing.T) {
	s := desktop(t)
	s.Host = "h.example"
	for _, f := range s.Look(t.Context()) {
		assert.Equal(t, doctor.Works, f.State, "%+v", f)
		assert.NotEmpty(t, f.Found, f.Name)
		assert.Empty(t, f.Advice, f.Name)
	}
	assert.Equal(t, "h.example is 192.0.2.1, by the system's resolver", found(t, s, "names").Found)
	assert.Equal(t, "lo", found(t, s, "interfaces").Found)
	left, err := os.ReadDir(s.States)
	require.NoError(t, err)
	assert.Empty(t, left)
}

// Each trap of phones is found, and has an answer.
func TestTraps(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	refuse := func(networks ...string) func(network, address string) error {
		return func(network, _ string) error {
			for _, n := range networks {
				if n == network {
					return errors.New("operation not permitted")
				}
			}
			return nil
		}
	}
	for _, c := range []struct {
		name   string
		trap   func(s *doctor.Device)
		state  doctor.Health
		found  string
		advice string
	}{
		{"build", func(s *doctor.Device) { s.Names.GOOS = "linux" }, doctor.Limited,
			"the linux build", "android build"},
		{"build", func(*doctor.Device) {}, doctor.Works, "android/", ""},
		{"names", func(s *doctor.Device) {
			s.Host = "h"
			s.Lookup = func(context.Context, string) ([]string, error) {
				return nil, errors.New("lookup h on [::1]:53: connection refused")
			}
		}, doctor.Fails, "connection refused", "--dns IP"},
		{"names", func(*doctor.Device) {}, doctor.Works, "Android's resolver", ""},
		{"certificates", func(s *doctor.Device) {
			s.Roots = func() (*x509.CertPool, error) { return x509.NewCertPool(), nil }
		}, doctor.Fails, "no authority", "ca-certificates"},
		{"certificates", func(s *doctor.Device) {
			s.Roots = func() (*x509.CertPool, error) { return nil, errors.New("no right to read it") }
		}, doctor.Fails, "no right to read it", "SSL_CERT_FILE"},
		{"interfaces", func(*doctor.Device) {}, doctor.Limited, "permission denied", "needs no list"},
		{"ports", func(s *doctor.Device) { s.Listen = refuse("tcp4", "udp4", "tcp6") }, doctor.Fails,
			"tcp4: operation not permitted; udp4", "right to use the network"},
		{"ports", func(s *doctor.Device) { s.Listen = refuse("tcp6") }, doctor.Limited,
			"tcp4, udp4; tcp6: operation", ""},
		{"store", func(s *doctor.Device) { s.States = filepath.Join(file, "states") }, doctor.Fails,
			"not a directory", "--store NAME"},
		{"store", func(s *doctor.Device) { s.States = "/proc" }, doctor.Fails, "no folder for states", "--store NAME"},
		{"clock", func(*doctor.Device) {}, doctor.Limited, "wake lock", "termux-wake-lock before"},
		{"clock", func(s *doctor.Device) { s.Late = func() time.Duration { return time.Second } }, doctor.Limited,
			"1000.0 ms late", "switch the screen on, and battery saving off; termux-wake-lock"},
		{"processor", func(*doctor.Device) {}, doctor.Limited, "at 600 MHz now, 2800 at most, governor powersave",
			"lowest clock"},
		{"heat", func(*doctor.Device) {}, doctor.Limited, "51 °C", "cool"},
		{"power", func(*doctor.Device) {}, doctor.Limited, "battery at 40 %", "charger"},
		{"power", func(s *doctor.Device) {
			s.Root.(fstest.MapFS)["sys/class/power_supply/battery/status"] = &fstest.MapFile{Data: []byte("Charging")}
		}, doctor.Works, "battery at 40 %, charging", ""},
	} {
		s := phone(t)
		c.trap(&s)
		f := found(t, s, c.name)
		assert.Equal(t, c.state, f.State, "%s: %+v", c.name, f)
		assert.Contains(t, f.Found, c.found)
		assert.Contains(t, f.Advice, c.advice)
		if c.state == doctor.Fails {
			assert.NotEmpty(t, f.Advice, "what fails has an answer")
		}
	}
}

// The machine that the test runs on.
func TestThisMachine(t *testing.T) {
	s := doctor.Local(resolve.Local(""), x509.SystemCertPool, t.TempDir())
	assert.Equal(t, doctor.Works, found(t, s, "store").State)
	assert.Contains(t, found(t, s, "ports").Found, "tcp4")
	assert.Contains(t, found(t, s, "clock").Found, "waits of 1 ms")
}
