package prometheus

import (
	"bytes"
	"io"
	"strings"
)

// own are the families of the library whose series have other names, with their types.
var own = map[string]string{
	"go_sched_latencies_seconds": "histogram", "go_gc_pauses_seconds": "histogram", "go_gc_duration_seconds": "summary",
}

// helps are the meanings of what the library writes about the Go runtime and the process.
var helps = map[string]string{
	"go_sched_latencies_seconds":             "Time that goroutines waited to run.",
	"go_mutex_wait_seconds_total":            "Time that goroutines waited for mutexes of the runtime and of programs.",
	"go_gc_mark_assist_cpu_seconds_total":    "Processor time in which goroutines helped the garbage collector.",
	"go_gc_cpu_seconds_total":                "Processor time of the garbage collector.",
	"go_gc_pauses_seconds":                   "Pauses for garbage collections.",
	"go_scavenge_cpu_seconds_total":          "Processor time in which memory was given back to the system.",
	"go_memlimit_bytes":                      "The soft limit of memory, GOMEMLIMIT.",
	"go_memstats_alloc_bytes":                "Memory of objects.",
	"go_memstats_alloc_bytes_total":          "Memory of all objects ever allocated.",
	"go_memstats_buck_hash_sys_bytes":        "Memory of tables for profiles.",
	"go_memstats_frees_total":                "Objects that were freed.",
	"go_memstats_gc_cpu_fraction":            "Share of the processor time that the garbage collector had.",
	"go_memstats_gc_sys_bytes":               "Memory of the garbage collector.",
	"go_memstats_heap_alloc_bytes":           "Memory of objects on the heap.",
	"go_memstats_heap_idle_bytes":            "Memory of the heap that is unused.",
	"go_memstats_heap_inuse_bytes":           "Memory of the heap that is used.",
	"go_memstats_heap_objects":               "Objects on the heap.",
	"go_memstats_heap_released_bytes":        "Memory of the heap that was given back to the system.",
	"go_memstats_heap_sys_bytes":             "Memory of the heap that came from the system.",
	"go_memstats_last_gc_time_seconds":       "When the last garbage collection ended, in Unix time.",
	"go_memstats_lookups_total":              "Always 0.",
	"go_memstats_mallocs_total":              "Objects that were allocated.",
	"go_memstats_mcache_inuse_bytes":         "Memory of caches of the allocator that is used.",
	"go_memstats_mcache_sys_bytes":           "Memory of caches of the allocator that came from the system.",
	"go_memstats_mspan_inuse_bytes":          "Memory of spans of the allocator that is used.",
	"go_memstats_mspan_sys_bytes":            "Memory of spans of the allocator that came from the system.",
	"go_memstats_next_gc_bytes":              "Size of the heap at which the next garbage collection begins.",
	"go_memstats_other_sys_bytes":            "Memory of the runtime for all else.",
	"go_memstats_stack_inuse_bytes":          "Memory of stacks that is used.",
	"go_memstats_stack_sys_bytes":            "Memory of stacks that came from the system.",
	"go_memstats_sys_bytes":                  "Memory that came from the system.",
	"go_cgo_calls_count":                     "Calls from Go to C.",
	"go_cpu_count":                           "Processors that can be used.",
	"go_gc_duration_seconds":                 "Pauses for the last garbage collections.",
	"go_gc_forced_count":                     "Garbage collections that the program asked for.",
	"go_gomaxprocs":                          "Goroutines that may run at once, GOMAXPROCS.",
	"go_goroutines":                          "Goroutines.",
	"go_threads":                             "Threads of the system that were created.",
	"go_info":                                "The version of Go.",
	"go_info_ext":                            "The compiler and the system.",
	"process_cpu_seconds_system_total":       "Processor time in the kernel.",
	"process_cpu_seconds_total":              "Processor time.",
	"process_cpu_seconds_user_total":         "Processor time outside the kernel.",
	"process_major_pagefaults_total":         "Page faults that needed a disk.",
	"process_minor_pagefaults_total":         "Page faults that needed no disk.",
	"process_num_threads":                    "Threads.",
	"process_resident_memory_bytes":          "Resident memory.",
	"process_start_time_seconds":             "When the process began, in Unix time.",
	"process_virtual_memory_bytes":           "Virtual memory.",
	"process_virtual_memory_peak_bytes":      "The most virtual memory so far.",
	"process_resident_memory_peak_bytes":     "The most resident memory so far.",
	"process_resident_memory_anon_bytes":     "Resident memory that is of no file.",
	"process_resident_memory_file_bytes":     "Resident memory that is of files.",
	"process_resident_memory_shared_bytes":   "Resident memory that others have as well.",
	"process_io_read_bytes_total":            "Bytes that the process read.",
	"process_io_written_bytes_total":         "Bytes that the process wrote.",
	"process_io_read_syscalls_total":         "Calls of the system that read.",
	"process_io_write_syscalls_total":        "Calls of the system that wrote.",
	"process_io_storage_read_bytes_total":    "Bytes that were read from disks.",
	"process_io_storage_written_bytes_total": "Bytes that were written to disks.",
	"process_max_fds":                        "File descriptors that may be open.",
	"process_open_fds":                       "File descriptors that are open.",
}

// describeLibrary writes what the library has written, with the meaning and the type of each
// family. A name that is not known, of another system or of a later library, says where it comes
// from. One that could be of another type than it seems has none.
func describeLibrary(w io.Writer, text []byte) {
	last := ""
	for line := range bytes.Lines(text) {
		name := string(line[:max(0, bytes.IndexAny(line, "{ "))])
		kind := ""
		for _, suffix := range []string{"", "_bucket", "_sum", "_count"} {
			if base := strings.TrimSuffix(name, suffix); own[base] != "" {
				name, kind = base, own[base]
			}
		}
		switch {
		case kind != "" || strings.HasSuffix(name, "_count"):
		case strings.HasSuffix(name, "_total"):
			kind = "counter"
		default:
			kind = "gauge"
		}
		if name != last {
			last = name
			help := helps[name]
			if help == "" {
				help = "Of the Go runtime or the process, as github.com/VictoriaMetrics/metrics has it."
			}
			_, _ = io.WriteString(w, "# HELP "+name+" "+help+"\n")
			if kind != "" {
				_, _ = io.WriteString(w, "# TYPE "+name+" "+kind+"\n")
			}
		}
		_, _ = w.Write(line)
	}
}
