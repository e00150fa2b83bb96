// Not part of the public API.
//
// Package reconcilers is the engine: an operator as a Runnable inside a standard manager. It is apart from the facade
// so that it has neither generics nor user-facing verbs: plain handlers go in, by [SetupWithManager]. Here are the
// options, the set-up and the [Gate]; everything else has a room of its own, and imports run down only.
//
// It never decides what a change means, and never touches the manager's cache: every kind has its own, which ends with
// it. Neighbours: facade above it fills the Options in; the rooms below it are visited by the tours that follow.
//
// # How an operator comes to watch
//
// SetupWithManager makes each registered handler a controller-runtime Reconciler of attempts (adapters.New), wrapped by
// the adapters that adapters/chains.go lists for its family. It claims the kinds against other operators of the manager
// (newClaim), and adds the operator to the manager. When that starts, Options.Begin may wait, and change the options;
// Options.End is called last of all. In between, orchestration.Orchestrator.Run asks
// discovery.Inquiry.Resolve what each selector means now, again at every resync that the discovery.CRDWatcher or a
// failing watch requests, and starts and stops controllers accordingly. controller.Run serves one resource whenever
// the Gate is open: for each namespace a Controller with an informer, a queue and passes.
//
// # The way of one object
//
// An object with one handler is created. These functions are called in this order; test/calltrace records them, and
// compares.
//
//	compact.Packer.New                    keeps it as compressed JSON, beside its name, uid and version
//	source.Events.Create                  gets the event from the informer, on the informer's goroutine
//	controller.Controller.Seen            updates the indices, and keeps the event for its handlers, before all else
//	source.PriorityQueue.AddWithOpts      orders requests: deletion, change, retry, resume; ticks of timers apart
//	controller.Controller.Reconcile       gets the request with a place, and hands it over to a goroutine
//	indexes.Readiness.Wait                has held it back until the indices are filled
//	controller.Controller.pass            is one look at one object, from here to its end
//	controller.Controller.deliverEvents   calls the handlers of raw events
//	memory.Object.Echoes                  tells our own write that nothing is to be done for: such a pass ends here
//	memory.Object.Newest                  is the later of the cache and our own last write
//	compact.Object.Open                   unpacks it, to be decoded for this pass alone
//	changes.Handling.Reconcile            leads the object to what its handlers want, in rounds
//	changes.pass.round                    takes the steps below, in this order
//	changes.object.refreshIfUncertain     reads the object anew if the answer to our last write was lost
//	changes.pass.observe                  reads all memory of the object
//	cause.Lens.New                        builds the essence of the object
//	cause.Lens.Last                       reads the last-handled essence
//	cause.Detect                          compares them: old, new, diff, deletion; and so the reason
//	changes.pass.attendBackground         starts and stops timers and daemons
//	changes.pass.retryUnwritten           writes what a former pass could not
//	changes.pass.checkInterest            asks all handlers whether they would ever want the object
//	adapters.InterestIn                   does so by their chains, which call nobody
//	adapters.Handler.Ask                  is one question to one handler
//	changes.pass.syncStorages             copies what only some of several storages have
//	changes.pass.ensureFinalizer          adds the finalizer before any handler is called, or removes it
//	changes.pass.dropStaleProgress        ends causes that do not exist any more
//	changes.pass.restoreProgress          takes up the progress where it was left
//	adapters.Select                       asks whose cause it is: creation, update, deletion, resume, field
//	changes.pass.callDueHandlers          calls those whose time has come
//	adapters.Handler.IsDue                asks each of them
//	execution.New                         makes the attempt
//	adapters.Handler.Start                sends it through the handler's chain, on a goroutine of its own
//	execution.Attempt.Continue            gives it the number of attempts before, and their time
//	adapters.Logging                      names handler, reason and attempt in the function's logger
//	adapters.ErrorClasses                 turns the error, if there is one, into an outcome
//	adapters.SubHandlers                  runs what the function declares
//	adapters.Recovery                     makes a panic an error
//	adapters.labels                      has profiles tell which handler costs what
//	adapters.call                         calls the function
//	execution.Limits.Judge                decides what follows: success, failure, or a delay before the next attempt
//	changes.outcomes.conclude             takes the outcome into account
//	changes.pass.closeOrContinue          writes what is left; if all are finished, that closes the cause
//	changes.object.storeHandled           with the new last-handled configuration
//	patching.Writer.ApplyRetrying         sends the status first, then one patch, and again after conflicts
//	changes.outcomes.written              forgets what has reached the API server
//	memory.Object.Proceed                 keeps the answer until the cache has it
//	controller.Controller.conclude        says when the object is looked at again
//	source.PriorityQueue.Release          gives the place to the next request
//
// Our own write comes back as an event, and ends at memory.Objects.TakeEcho, which controller.Controller.Seen asks
// before it is queued; or at memory.Object.Echoes, where a pass follows for handlers of events, or the pass that has
// written it was not over. If the last look could not settle the object, such as when a filter may ask for the status
// that a handler has set, the event is looked at as any other, and usually finds nothing to do.
package reconcilers
