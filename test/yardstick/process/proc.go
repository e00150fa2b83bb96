package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Usage contains the resources that a process has used since it started.
type Usage struct {
	// CPU is the time of all threads in user and kernel mode.
	CPU time.Duration
	// Resident is the present memory and Peak its maximum so far, in bytes. Anonymous is the part of Resident that is
	// not backed by files; the rest is mostly the program's own code.
	Resident, Peak, Anonymous uint64
}

const (
	// tick is the unit of CPU in /proc/PID/stat, independent of the kernel's own clock: USER_HZ, 100 on every Linux.
	tick = time.Second / 100
	// The indices of the fields utime and stime, counted from the first field after the program's name.
	userField, systemField = 11, 12
)

// Measure returns the present usage of a process.
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

// Parse parses the two files of /proc/PID.
//
// # Errors
//
// The files do not have the format of proc(5), or they contain no memory because the process has ended.
func Parse(stat, status string) (Usage, error) {
	// The program's name is in parentheses and can contain spaces and parentheses itself.
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
