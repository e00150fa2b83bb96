package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Usage is what a process has used since it started.
type Usage struct {
	// CPU is that of all its threads, in the program and in the kernel.
	CPU time.Duration
	// Resident is the memory that it has now, and Peak the most that it ever had, in bytes. Anonymous is the part of
	// Resident that it has filled itself: the rest are pages of files, most of them the program's own code.
	Resident, Peak, Anonymous uint64
}

const (
	// tick is the unit of CPU in /proc/PID/stat, whatever the kernel itself counts in: USER_HZ, 100 on Linux
	// everywhere.
	tick = time.Second / 100
	// The fields utime and stime, counted from the one behind the program's name.
	userField, systemField = 11, 12
)

// Measure reads what a process has used so far.
func Measure(pid int) (Usage, error) {
	folder := filepath.Join("/proc", strconv.Itoa(pid))
	stat, err := os.ReadFile(filepath.Join(folder, "stat"))
	if err != nil {
		return Usage{}, fmt.Errorf("measuring a process, which needs Linux: %w", err)
	}
	status, err := os.ReadFile(filepath.Join(folder, "status"))
	if err != nil {
		return Usage{}, fmt.Errorf("measuring a process, which needs Linux: %w", err)
	}
	return Parse(string(stat), string(status))
}

// Parse reads the two files of /proc/PID.
//
// # Errors
//
// They have not the form that proc(5) describes; or there is no memory in them, as the process has ended.
func Parse(stat, status string) (Usage, error) {
	// The program's name stands in parentheses, and may have spaces and parentheses itself.
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	if len(fields) <= systemField {
		return Usage{}, fmt.Errorf("reading CPU from %q: too few fields", stat)
	}
	var usage Usage
	for _, i := range []int{userField, systemField} {
		ticks, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return Usage{}, fmt.Errorf("reading CPU from %q: %w", stat, err)
		}
		usage.CPU += time.Duration(ticks) * tick
	}
	var err error
	if usage.Resident, err = memory(status, "VmRSS"); err != nil {
		return Usage{}, err
	}
	if usage.Anonymous, err = memory(status, "RssAnon"); err != nil {
		return Usage{}, err
	}
	usage.Peak, err = memory(status, "VmHWM")
	return usage, err
}

// memory reads one line of /proc/PID/status, such as "VmRSS:	    1024 kB".
func memory(status, name string) (uint64, error) {
	_, rest, found := strings.Cut(status, name+":")
	number, _, hasUnit := strings.Cut(strings.TrimSpace(rest), " kB")
	if !found || !hasUnit {
		return 0, fmt.Errorf("reading memory: there is no %s in kB", name)
	}
	kilobytes, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading %s: %w", name, err)
	}
	return kilobytes << 10, nil
}
