package background

// Doing is the state of a handler of one object. The values appear in metrics.
type Doing string

const (
	// Calling is the state while the function is called.
	Calling Doing = "running"
	// Resting is the state while the handler waits: for its turn, its initial delay, its next tick or its next attempt.
	Resting Doing = "waiting"
	// Stopping is the state from the request to stop until the end, also if the handler was abandoned meanwhile.
	Stopping Doing = "stopping"
)

// Census is one group of handlers that are counted together.
type Census struct {
	Handler string
	Daemon  bool
	Doing   Doing
}

// CountTasks counts the handlers of all objects by group, including deleted objects whose handlers have not ended yet.
func (s *Supervisor) CountTasks() map[Census]int {
	counts := map[Census]int{}
	for _, o := range s.allTasks() {
		o.addCounts(counts)
	}
	return counts
}

// addCounts adds the handlers of one object to the counts.
func (o *objectTasks) addCounts(into map[Census]int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range o.list {
		doing := Resting
		switch {
		// A stopping handler counts as such, even while its function runs.
		case t.reason != 0:
			doing = Stopping
		case t.calling:
			doing = Calling
		}
		into[Census{t.handlerID(), t.backgroundOptions().Daemon, doing}]++
	}
}
