package scenarios

import (
	"fmt"
	"io"
	"time"

	"github.com/kopf-runtime/kopf-runtime/test/yardstick/cluster"
	"github.com/kopf-runtime/kopf-runtime/test/yardstick/figures"
)

// Contender is a measured program. It gets KUBECONFIG in its environment, and the scenario and the number of objects as
// its last arguments unless it plays only one scenario.
type Contender struct {
	Name string
	Args []string
	// IsDynamic marks a contender that works without Go types although they exist.
	IsDynamic bool
	// SkippedScenarios lists the scenarios in which it does not take part.
	SkippedScenarios []string
	// OnlyScenario is the only scenario in which it takes part; empty means all common scenarios.
	OnlyScenario string
}

// User returns the name of the contender's API user.
func (c Contender) User() string { return "yardstick-" + c.Name }

// Bench holds the settings and services that all trials share.
type Bench struct {
	Cluster    *cluster.Cluster
	Contenders []Contender
	Book       *figures.Book
	// Folder is the folder of the operators' logs.
	Folder string
	// Progress gets progress lines.
	Progress io.Writer
	// Objects, Size and Rounds set the amount of work: Size is the approximate size of an object in bytes.
	Objects, Size, Rounds int
	// Window is how long timers tick, changes arrive and programs idle. Rest is how long an operator must be idle
	// before its memory counts as steady.
	Window, IdleTime time.Duration
	// Rate is the number of changes per second in the scenario latency.
	Rate int
}

func (b *Bench) say(format string, args ...any) { _, _ = fmt.Fprintf(b.Progress, format+"\n", args...) }
