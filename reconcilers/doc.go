// Package reconcilers is the engine: an operator as a Runnable inside a standard manager. It is apart from the facade
// so that it has neither generics nor user-facing verbs: plain handlers go in, by [SetupWithManager]. Here are the
// options, the set-up and the [Gate]; everything else has a room of its own, and imports run down only.
//
// # How an operator comes to watch
//
//   - SetupWithManager makes a Reconciler of every handler (adapters.New), claims its kinds against other operators of
//     the manager (newClaim), and adds the operator to the manager.
//   - orchestration.Orchestrator.Run asks discovery.Inquiry.Resolve what each selector means now, again at every resync
//     that the discovery.CRDWatcher or a failing watch requests, and starts and stops controllers accordingly.
//   - controller.Run serves one resource: for each namespace a Controller with an informer, a queue and passes.
//
// # The way of one event
//
//   - source.Events gets it from the informer, on whose goroutine Controller.Seen brings the indices up to date
//     (indexes.Indexer.Seen) and keeps the event for its handlers, before anything is queued.
//   - queue.Queue orders requests (deletion, change, retry, resume; ticks of timers), and hands them out with a place.
//   - Controller.Reconcile waits for the indexes.Readiness, and hands the request over to a goroutine, which works on
//     it by Controller.pass:
//   - fetch: memory.Object.Newest is the later of the cache and our own last write, unless the object is throttled;
//   - events: deliverEvents calls the handlers of raw events (events.Handling.Deliver);
//   - changes: changes.Handling.Reconcile looks at the object in rounds: observe compares the essence with the
//     last-handled configuration; attendBackground starts and stops timers and daemons; retryUnwritten,
//     checkInterest, syncStorages; ensureFinalizer adds or removes the finalizer; dropStaleProgress, restoreProgress;
//     callDueHandlers makes an execution.Attempt of each that is due, for its adapters.Handler.Reconcile;
//     closeOrContinue has patching.Writer write the status first, then the one patch that closes the cause;
//   - conclude says when the object is looked at again.
//
// It never decides what a change means, and never touches the manager's cache: every kind has its own, which ends with
// it. Neighbours: facade above it fills the Options in.
package reconcilers
