package scenarios

import (
	"fmt"
	"io"
	"time"

	"github.com/kopf-runtime/kopf-runtime/test/yardstick/cluster"
	"github.com/kopf-runtime/kopf-runtime/test/yardstick/figures"
)

// Contender is a program that is measured. It finds KUBECONFIG among its variables, and is told the scenario and the
// number of objects behind its arguments, unless it plays one scenario alone.
type Contender struct {
	Name string
	Args []string
	// Dynamic says that it works on objects without Go types, although there are such types.
	Dynamic bool
	// Skips are scenarios that it takes no part in.
	Skips []string
	// Plays is the only scenario that it takes part in, with others of its kind; empty is all that everybody plays.
	Plays string
}

// User is the name by which the API server knows the contender.
func (c Contender) User() string { return "yardstick-" + c.Name }

// Bench is what all trials share.
type Bench struct {
	Cluster    *cluster.Cluster
	Contenders []Contender
	Book       *figures.Book
	// Folder is where the logs of the operators go.
	Folder string
	// Progress gets lines of what is being done.
	Progress io.Writer
	// Objects, Size and Rounds say how much is measured: Size is the bytes of an object, about.
	Objects, Size, Rounds int
	// Window is for how long timers tick, changes come, and programs idle; Rest is for how long nothing happens before
	// memory is called steady.
	Window, Rest time.Duration
	// Rate is how many changes come per second where latency is measured.
	Rate int
}

func (b *Bench) say(format string, args ...any) { _, _ = fmt.Fprintf(b.Progress, format+"\n", args...) }
