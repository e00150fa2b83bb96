// Package kopf is a framework for Kubernetes operators on top of controller-runtime, with the handlers of Kopf, the
// Python framework. [For] selects objects of one kind; handlers are functions that run when these objects change.
//
//	import kopf "github.com/kopf-runtime/kopf-runtime/facade"
//
//	func main() {
//		schemes := runtime.SchemeBuilder{v1.AddToScheme}
//		op := kopf.New("databases.example.org", kopf.Settings{AddToScheme: schemes}) // the name prefixes annotations
//		dbs := kopf.For(op, &v1.Database{})
//		dbs.OnCreate("provision", provision, kopf.Retries(5), kopf.Timeout(time.Hour)) // at most 5 calls, and an hour
//		dbs.Timer("check", time.Minute, check) // func check(ctx context.Context, t *kopf.Task[*v1.Database]) error
//		kopf.Main(op)
//	}
//
//	func provision(ctx context.Context, c *kopf.Change[*v1.Database]) error {
//		host, err := cloud.Ensure(ctx, c.Object.UID, c.Object.Spec.Size)
//		if err != nil {
//			return kopf.Temporary(err, 30*time.Second) // call provision again in 30 seconds
//		}
//		c.Patch(func(db *v1.Database) { db.Status.Host = host }) // written when provision returns
//		return nil
//	}
//
// Package [github.com/kopf-runtime/kopf-runtime/facade/facadetest] calls a handler without a cluster:
//
//	got := facadetest.NewChange(&v1.Database{}).Call(t.Context(), provision) // NewTask for check
//	if got.Err != nil || got.Object.Status.Host == "" {
//		t.Errorf("got %+v", got)
//	}
//
// A handler that returns an error is called again after 60 seconds; [Temporary] sets the delay, [Permanent] gives up.
// Progress is stored in annotations of the object, so retries continue after a restart. Handlers must be idempotent.
// c.Object is a copy: assignments to it are discarded, and Patch keeps them. [Main] reports all mistakes of the
// registration at once.
//
// # Names by task
//
//   - Start: [New] with [Settings], or [AsKopf] to take over from Kopf; [For], [ForResource], [ForResourceAs],
//     [ForResourceFunc]; then [Main], [Operator.Run], or [Operator.SetupWithManager] in a project with a manager.
//   - React: [Selection.OnCreate], [Selection.OnUpdate], [Selection.OnDelete], [Selection.OnResume],
//     [Selection.OnField], [Selection.On] for several reasons, [Selection.OnEvent] for raw events.
//   - Retry and fail: [Temporary], [Permanent]; options [Retries], [Timeout], [Backoff], [Errors], [HoldOnFailure],
//     [Optional].
//   - Change the object: [Change.Patch], [Change.TryPatch], [Change.Latest], [Change.Flush], [Change.SetResult],
//     [Result], [Change.Condition]; without a Go type [GetField], [GetFieldOr], [SetField], [RemoveField],
//     [PatchField].
//   - Report: [Change.Info], [Change.Warn], [Change.Exception], [Change.Event], [Change.EventRecorderFor],
//     [Selection.Conditions].
//   - Run in the background: [Selection.Daemon] and [Selection.Timer] with a [Task]; [Task.Stopping], [Task.Sleep];
//     options [InitialDelay], [Idle], [Sharp], [Jitter], [CancelBackoff], [CancelTimeout], [CancelPolling].
//   - Divide the work: [Change.Sub], [Change.RunSubs], [Change.Outcome], [After], [AfterFinished], [LifecycleFunc];
//     [FormerIDs] after a rename.
//   - Manage children: [Change.Ensure], [Change.Adopt], [Once], [UntilDone], [Retain], [Selection.Owns],
//     [OnlyEnsured], [OnChild], [WhenChild], [WaitFor], [Selection.Watches].
//   - Admit requests: [Selection.Validate], [Selection.Mutate], [Deny], [Admission.Warning], [ForSubresource];
//     options [Operations], [Subresource], [SideEffects], [IgnoreFailures], [Persistent].
//   - Select objects: [Selection.MatchingLabels], [Selection.MatchingAnnotations], [Selection.WithLabel],
//     [Selection.WithAnnotation], [Selection.When], [Selection.RecheckOn]; [All], [Any], [Not].
//   - Select changes: options [InField], [Value], [OldValue], [NewValue], [WhenChange], [WhenEvent], [WhenRequest];
//     in the handler [FieldChange], [Diff.Touches].
//   - Share: [JoinOptions] for options, [Call] for functions, [NewIndex] for lookups, [NewMemo] for a value per
//     object.
//   - Hook into the process: [Operator.OnStartup], [Operator.OnCleanup], [Operator.OnLogin], [Operator.OnProbe],
//     [Operator.WithManager], [Operator.Command], [Operator.Ready].
//   - Keep values out of annotations: [Selection.Redacted], [PersistenceSettings].
//   - Test: package [github.com/kopf-runtime/kopf-runtime/facade/facadetest] calls single handlers and runs whole
//     operators.
//
// The folder docs has a page for each topic, and docs/options.md lists the options of each verb. The folder examples
// has complete programs.
package kopf
