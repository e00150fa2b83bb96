package process

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
)

// cleanupScript is the script of the watchdog. It reads group ids until its input ends, which it does when the one
// process that holds the other end has ended for any reason; then it cleans up. The second removal covers a file that a
// dying server was just creating.
const cleanupScript = `
trap '' HUP INT TERM
dir=$1
set --
while read -r pid; do set -- "$@" "-$pid"; done
if [ $# -gt 0 ]; then kill -s KILL -- "$@" 2>/dev/null; fi
rm -rf -- "$dir" || { sleep 1; rm -rf -- "$dir"; }
`

// Watchdog is a small process that outlives its starter's death long enough to end the starter's programs and to
// remove their folder. Where there is no shell it does nothing.
type Watchdog struct {
	process *Process
	input   io.WriteCloser
}

// Watch starts a watchdog over a folder. The caller owes it a Dismiss.
func Watch(dir string) (*Watchdog, error) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		return &Watchdog{}, nil
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("opening the watchdog's line: %w", err)
	}
	defer read.Close()
	cmd := exec.Command(shell, "-c", cleanupScript, "watchdog", dir)
	cmd.Stdin = read // output stays unset: an inherited pipe would keep the starter's reader waiting
	cmd.Dir = os.TempDir()
	p, err := startFree(cmd)
	if err != nil {
		write.Close()
		return nil, err
	}
	return &Watchdog{process: p, input: write}, nil
}

// Guard adds a program started by Start to those that die with the starter.
func (w *Watchdog) Guard(p *Process) error {
	if w.process == nil {
		return nil
	}
	if _, err := io.WriteString(w.input, strconv.Itoa(p.PID())+"\n"); err != nil {
		return fmt.Errorf("registering %s with the watchdog: %w", p.cmd.Path, err)
	}
	return nil
}

// Dismiss ends the watchdog without letting it act: the caller has cleared up.
func (w *Watchdog) Dismiss() {
	if w.process == nil {
		return
	}
	w.process.Stop(0) // before its line closes, which it would take for our death
	w.input.Close()
}
