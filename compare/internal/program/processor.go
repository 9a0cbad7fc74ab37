package program

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// tick is the unit of /proc/PID/stat, on Linux of each kind.
const tick = 10 * time.Millisecond

// Processor is the time of processors that the process took so far, in steps of 10 ms, as Linux
// counts it: elsewhere it is not known, which is an error.
func (p *Process) Processor() (time.Duration, error) {
	path := fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid)
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	// Behind the name, which may have anything in it, the times in user and system mode are words
	// 12 and 13 of those from the state on (proc_pid_stat(5), fields 14 and 15).
	words := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(words) < 13 {
		return 0, fmt.Errorf("%s: only %d fields", path, len(words))
	}
	var ticks int64
	for _, word := range words[11:13] {
		n, err := strconv.ParseInt(string(word), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}
