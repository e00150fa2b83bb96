package chaos_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/test/genuine"
)

// Three operators of ours and two of Kopf: no two of ours act at once. Where one of Kopf acts beside another operator,
// it is counted by the reason, and fails only without one: docs/peering.md explains them.
func TestWithKopf(t *testing.T) {
	if os.Getenv("CHAOS_KOPF") == "" {
		t.Skip("CHAOS_KOPF is not set: make explore NAME=chaos sets it")
	}
	folder, err := genuine.Folder()
	if err != nil {
		t.Fatal(err)
	}
	kopfFolder = folder
	lifetime := duration(t, "CHAOS_LIFETIME", 15*time.Second)
	g := newChaosRun(t, lifetime, 5)
	for i, priority := range g.plan.priorities {
		// Clocks do not differ, for Kopf believes those of all; and Kopf's are not among the equal ones, for all of
		// those pause in Kopf.
		about := operator{
			Identity: fmt.Sprintf("%c%d", 'e'-rune(i), i), Priority: 10 * priority, Lifetime: lifetime, AsKopf: true,
		}
		genuine := i >= 3
		if genuine {
			about.Identity, about.Priority = kopfPrefix+about.Identity, 10*priority+i
		}
		g.fleet.join(about, genuine)
	}
	go g.watchRecords(t.Context())
	a := g.play()
	g.judge(a, func(first, second *call) bool { return !isKopf(first) && !isKopf(second) })
	t.Logf("overlaps with Kopf: %s", g.figuresOfOverlaps(t, a))
}

const kopfPrefix = "kopf-"

func isKopf(c *call) bool { return strings.HasPrefix(c.beginReport.By, kopfPrefix) }

func kind(c *call) string {
	if isKopf(c) {
		return "Kopf"
	}
	return "ours"
}

// kopfFolder is where Kopf is.
var kopfFolder string

// kopfCommand is the process of a genuine operator of Kopf.
func kopfCommand(about operator) *exec.Cmd {
	process := exec.Command( //nolint:gosec,noctx // until it is ended
		filepath.Join(kopfFolder, "bin", "kopf"), "run", "-A", "--peering="+peeringName,
		"--priority="+strconv.Itoa(about.Priority), filepath.Join("testdata", "handlers.py"),
	)
	process.Env = append(os.Environ(), "POD_ID="+about.Identity, "CHAOS_COLLECTOR="+about.Collector,
		"CHAOS_LIFETIME="+strconv.Itoa(int(about.Lifetime.Seconds())))
	return process
}
