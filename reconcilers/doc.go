// Not part of the public API.
//
// Package reconcilers is the engine: it runs one operator as a Runnable inside a controller-runtime manager. Plain
// handlers go in through [SetupWithManager]; generics and user-facing verbs belong to the facade.
//
// This folder holds the options, the set-up, and the [Gate] that pauses the operator. Each other task has a subpackage,
// and imports only lead downwards. The package does not decide why an object is handled (package cause does), and does
// not use the manager's cache: each kind has its own cache, which ends together with its controller.
//
// # How an operator starts to watch
//
// SetupWithManager turns each registered handler into a controller-runtime Reconciler of attempts (adapters.New),
// wrapped by the adapters that adapters/chains.go lists for its family. It claims the kinds, so that no other operator
// of the manager can claim them (newClaim), and adds the operator to the manager. When the manager starts it,
// Options.Begin may block, and may change the options; Options.End is called last. In between,
// orchestration.Orchestrator.Run resolves the selectors with discovery.Inquiry.Resolve and starts and stops controllers
// accordingly. It resolves them again at each resync, which the discovery.CRDWatcher or a failing watch requests.
// controller.Run serves one resource whenever the Gate is open: for each namespace it runs a Controller with an
// informer, a queue and passes.
//
// # How one object is handled
//
// An object with one handler is created. These functions are called in this order. The suite in test/calltrace records
// the real calls and compares them with this list.
//
//	compact.Packer.New                    stores it as compressed JSON, beside its name, uid and version
//	source.Events.Create                  receives the event on the informer's goroutine
//	controller.Controller.NoteEvent       updates the indices and stores the raw event, before anything is queued
//	source.PriorityQueue.AddWithOpts      orders requests: deletion, change, retry, resume; timer ticks separately
//	controller.Controller.Reconcile       gets the request with a slot, and continues on a goroutine of its own
//	indexes.Readiness.Wait                has blocked it until the indices were filled
//	controller.Controller.runPass         runs one pass over the object, including all steps below
//	controller.Controller.deliverEvents   calls the handlers of raw events
//	memory.ObjectState.IsEcho             detects an own write that needs no further work; such a pass ends here
//	memory.ObjectState.NewestState        returns the newer of the cached object and our own last write
//	compact.CachedObject.Open             decompresses it; it is decoded for this pass alone
//	changes.ChangeHandling.Reconcile      runs rounds until the handlers have no more work in this pass
//	changes.pass.runRound                 runs the steps below, in this order
//	changes.object.refreshIfUncertain     fetches the object if the answer to our last write was lost
//	changes.pass.observeObject            reads all stored memory of the object
//	cause.Lens.New                        builds the essence of the object
//	cause.Lens.Last                       reads the last-handled essence
//	cause.Detect                          compares both: old, new, diff, deletion; this gives the reason
//	changes.pass.attendBackground         starts and stops timers and daemons
//	changes.pass.retryUnwritten           retries the unsaved results of a former pass
//	changes.pass.checkInterest            finds out whether any handler can ever match the object
//	adapters.InterestIn                   runs the handlers' chains as questions, without calling functions
//	adapters.HandlerChain.Ask             asks the chain of one handler one question
//	changes.pass.syncStorages             copies records that only some of several storages have
//	changes.pass.ensureFinalizer          adds the finalizer before any handler is called, or removes it
//	changes.pass.dropStaleProgress        ends causes that do not exist any more
//	changes.pass.restoreProgress          restores the progress from the records
//	adapters.Select                       selects the handlers: for a creation, update, deletion, resume or field
//	changes.pass.callDueHandlers          calls the handlers that are due
//	adapters.HandlerChain.IsDue           decides that for each of them
//	execution.NewAttempt                  makes the attempt
//	adapters.HandlerChain.Start           runs it through the handler's chain, on a goroutine of its own
//	execution.Attempt.ApplyAccount        sets the number of former attempts, and the time since the first one
//	adapters.Logging                      adds handler, reason and attempt to the function's logger
//	adapters.ErrorClasses                 turns the returned error, if any, into an outcome
//	adapters.SubHandlers                  runs the sub-handlers that the function declares
//	adapters.Recovery                     turns a panic into an error
//	adapters.labelsAdapter                sets the profiler labels, so that profiles show the cost of each handler
//	adapters.call                         calls the function
//	execution.Limits.OutcomeOf            decides on success, failure, or a delay before the next attempt
//	changes.outcomes.applyOutcome         records the outcome
//	changes.pass.closeOrContinue          writes the unsaved rest; this closes the cause if all handlers are finished
//	changes.object.storeHandled           adds the new last-handled configuration to that write
//	patching.PatchWriter.ApplyRetrying    sends the status first, then one patch, and repeats them after conflicts
//	changes.outcomes.markWritten          drops the outcomes that have reached the API server
//	memory.ObjectState.ApplyPassResult    keeps the answer until the cache has it
//	controller.Controller.concludePass    decides when the next pass over the object is due
//	source.PriorityQueue.Release          releases the slot for the next request
//
// The informer delivers our own write as an event. Usually memory.Objects.CheckEcho drops it:
// controller.Controller.NoteEvent calls that before it queues a request. If event handlers need a pass, or the pass
// that has written is still running, memory.ObjectState.IsEcho ends the additional pass instead. If the last pass could
// not settle the object, such as when a filter may depend on the status that a handler has set, the event gets an
// ordinary pass, which usually finds nothing to do.
package reconcilers
