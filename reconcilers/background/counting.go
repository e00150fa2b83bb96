package background

// Doing is what a handler of one object does now.
type Doing string

const (
	// Calling is that its function is called.
	Calling Doing = "running"
	// Resting is that it waits: for its turn, its initial delay, its next tick or its next attempt.
	Resting Doing = "waiting"
	// Stopping is that it was told to stop, and has not ended yet, even if it was abandoned.
	Stopping Doing = "stopping"
)

// Census is one group of handlers.
type Census struct {
	Handler string
	Daemon  bool
	Doing   Doing
}

// Census counts the handlers of all objects, be these deleted or not.
func (s *Supervisor) Census() map[Census]int {
	counts := map[Census]int{}
	for _, o := range s.all() {
		o.count(counts)
	}
	return counts
}

func (o *objectTasks) count(into map[Census]int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range o.list {
		doing := Resting
		switch {
		case t.reason != 0:
			doing = Stopping
		case t.calling:
			doing = Calling
		}
		into[Census{t.id(), t.background().Daemon, doing}]++
	}
}
