package background

// TaskState is the state of a handler of one object. The values appear in metrics.
type TaskState string

const (
	// TaskRunning is the state while the function is called.
	TaskRunning TaskState = "running"
	// TaskWaiting is the state while the handler waits: for its turn, its initial delay, its next tick or its next
	// attempt.
	TaskWaiting TaskState = "waiting"
	// TaskStopping is the state from the request to stop until the end, also if the handler was abandoned meanwhile.
	TaskStopping TaskState = "stopping"
)

// TaskGroup is one group of handlers that are counted together.
type TaskGroup struct {
	Handler string
	Daemon  bool
	State   TaskState
}

// CountTasks counts the handlers of all objects by group, including deleted objects whose handlers have not ended yet.
func (s *Supervisor) CountTasks() map[TaskGroup]int {
	counts := map[TaskGroup]int{}
	for _, o := range s.allTasks() {
		o.addCounts(counts)
	}
	return counts
}

// addCounts adds the handlers of one object to the counts.
func (o *objectTasks) addCounts(into map[TaskGroup]int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range o.list {
		doing := TaskWaiting
		switch {
		// A stopping handler counts as such, even while its function runs.
		case t.reason != 0:
			doing = TaskStopping
		case t.calling:
			doing = TaskRunning
		}
		into[TaskGroup{t.handlerID(), t.backgroundOptions().Daemon, doing}]++
	}
}
