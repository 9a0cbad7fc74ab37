package monitor

import (
	"fmt"
	"io"
	"net/http"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"time"
)

// The time that a profile of the processor, and a trace, run.
const (
	profileTime = 30 * time.Second
	traceTime   = time.Second
	maxTime     = 5 * time.Minute
)

// profiles answers a request as net/http/pprof does, for go tool pprof: that package brings
// templates with it, and with these the linker keeps every exported method of every type.
//
// A profile shows texts of messages. So requests must come from this machine, and name it by an
// address or name of its own, so that no page in a browser gets there by a name that it made up.
func profiles(w http.ResponseWriter, r *http.Request, name string) {
	if !isLocal(r) {
		http.Error(w, "profiles are for programs of this machine only", http.StatusForbidden)
		return
	}
	switch name {
	case "":
		listProfiles(w)
	case "profile":
		timed(w, r, profileTime, pprof.StartCPUProfile, pprof.StopCPUProfile)
	case "trace":
		timed(w, r, traceTime, trace.Start, trace.Stop)
	default:
		profile(w, r, name)
	}
}

func listProfiles(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	for _, p := range pprof.Profiles() {
		fmt.Fprintf(w, "%s\t%d\n", p.Name(), p.Count())
	}
	fmt.Fprintf(w, "profile?seconds=N\tof the processor\ntrace?seconds=N\texecution trace\n")
}

// profile writes a profile of the runtime; debug=1 or 2 makes text of it.
func profile(w http.ResponseWriter, r *http.Request, name string) {
	p := pprof.Lookup(name)
	if p == nil {
		http.Error(w, "no such profile; /debug/pprof/ lists them", http.StatusNotFound)
		return
	}
	debug, _ := strconv.Atoi(r.URL.Query().Get("debug"))
	w.Header().Set("Content-Type", "application/octet-stream")
	if debug > 0 {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	}
	_ = p.WriteTo(w, debug) // a client that went away
}

// timed writes what is collected for the time that is asked for.
func timed(w http.ResponseWriter, r *http.Request, d time.Duration, start func(io.Writer) error, stop func()) {
	if text := r.URL.Query().Get("seconds"); text != "" {
		seconds, err := strconv.ParseFloat(text, 64)
		if d = time.Duration(seconds * float64(time.Second)); err != nil || d <= 0 || d > maxTime {
			text := fmt.Sprintf("seconds is a number above 0, up to %.0f", maxTime.Seconds())
			http.Error(w, text, http.StatusBadRequest)
			return
		}
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if err := start(w); err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	defer stop()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
}
