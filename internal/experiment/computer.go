package experiment

import (
	"cmp"
	"io/fs"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// This describes this computer, and the program that runs.
func This() Computer {
	info, _ := debug.ReadBuildInfo() // nil: the program has none
	return Describe(os.DirFS("/"), build(info))
}

// build is the version of a program, with the commit of its source if that is known.
func build(info *debug.BuildInfo) string {
	if info == nil {
		return "devel"
	}
	version, commit, changes := cmp.Or(strings.Trim(info.Main.Version, "()"), "devel"), "", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = " " + s.Value[:min(len(s.Value), 12)]
		case "vcs.modified":
			if s.Value == "true" {
				changes = "+changes"
			}
		}
	}
	return version + commit + changes
}

// Describe describes the computer that the process runs on, by the files of Linux and Android under
// a root. What cannot be read, as most of it in an app on Android, is left out.
func Describe(root fs.FS, program string) Computer {
	c := Computer{
		Program: program, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH,
		Processors: runtime.GOMAXPROCS(0),
	}
	c.Kernel = text(root, "proc/sys/kernel/osrelease")
	for _, name := range []string{"proc/device-tree/model", "sys/class/dmi/id/product_name"} {
		if c.Model = text(root, name); c.Model != "" {
			break
		}
	}
	cpus := fields(root, "proc/cpuinfo")
	for _, key := range []string{"model name", "Hardware", "Processor", "CPU part"} {
		if c.Processor = cpus[key]; c.Processor != "" {
			break
		}
	}
	c.MHz, c.MaxMHz = clockOf(root)
	if kb, ok := number(strings.TrimSuffix(fields(root, "proc/meminfo")["MemTotal"], " kB")); ok {
		c.MemoryOctets = int64(kb) << 10
	}
	c.Celsius = hottest(root)
	c.battery(root)
	mean, _, _ := strings.Cut(text(root, "proc/loadavg"), " ")
	if load, ok := number(mean); ok {
		c.LoadAverage = &load
	}
	return c
}

// clockOf returns the frequency of the fastest processor, now and at most, in MHz; 0: not known.
func clockOf(root fs.FS) (now, most float64) {
	const cpus = "sys/devices/system/cpu/cpu[0-9]*/cpufreq/"
	for _, khz := range numbers(root, cpus+"scaling_cur_freq") {
		now = max(now, khz/1000)
	}
	for _, khz := range numbers(root, cpus+"cpuinfo_max_freq") {
		most = max(most, khz/1000)
	}
	if now == 0 {
		now, _ = number(fields(root, "proc/cpuinfo")["cpu MHz"])
	}
	return now, most
}

// hottest returns the temperature of the hottest zone in °C; nil: not known.
func hottest(root fs.FS) (celsius *float64) {
	const coldest, hottest = -40, 150 // beyond these a sensor is not connected
	for _, milli := range numbers(root, "sys/class/thermal/thermal_zone*/temp") {
		c := milli / 1000
		if c > coldest && c < hottest && (celsius == nil || c > *celsius) {
			celsius = &c
		}
	}
	return celsius
}

// battery adds the state of the first battery.
func (c *Computer) battery(root fs.FS) {
	list, _ := fs.Glob(root, "sys/class/power_supply/*/type")
	for _, name := range list {
		if text(root, name) != "Battery" {
			continue
		}
		if percent, ok := number(text(root, path.Join(path.Dir(name), "capacity"))); ok {
			c.BatteryPercent = &percent
		}
		if status := text(root, path.Join(path.Dir(name), "status")); status != "" {
			charging := status == "Charging" || status == "Full"
			c.Charging = &charging
		}
		return
	}
}

// text returns a file's only line, "" if it cannot be read.
func text(root fs.FS, name string) string {
	b, _ := fs.ReadFile(root, name)
	return strings.Trim(string(b), " \t\n\x00")
}

// fields returns the lines NAME: VALUE of a file, the last of each name.
func fields(root fs.FS, name string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(text(root, name)) {
		if key, value, ok := strings.Cut(line, ":"); ok {
			found[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	return found
}

// numbers returns what the files of a pattern say.
func numbers(root fs.FS, pattern string) (list []float64) {
	names, _ := fs.Glob(root, pattern)
	for _, name := range names {
		if x, ok := number(text(root, name)); ok {
			list = append(list, x)
		}
	}
	return list
}

func number(s string) (x float64, ok bool) {
	x, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return x, err == nil
}
