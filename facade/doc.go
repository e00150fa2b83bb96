// Package kopf is Kopf, the Python operator framework, for Go. An operator is a name, selections of objects, and
// handlers: functions that react to changes. The package runs on controller-runtime.
//
//	import kopf "github.com/kopf-runtime/kopf-runtime/facade"
//
//	func main() {
//		op := kopf.New("databases.example.org")
//		dbs := kopf.For(op, &v1.Database{})
//		dbs.OnCreate("provision", provision, kopf.Retries(5), kopf.Timeout(time.Hour))
//		dbs.Timer("check", time.Minute, check) // check(ctx, *kopf.Task[*v1.Database]) error
//		kopf.Main(op)
//	}
//
//	func provision(ctx context.Context, c *kopf.Change[*v1.Database]) error {
//		host, err := cloud.Create(ctx, c.Object.Name, c.Object.Spec.Size)
//		if err != nil {
//			return kopf.Temporary(err, 30*time.Second) // try again in 30 seconds
//		}
//		c.Patch(func(db *v1.Database) { db.Status.Host = host })
//		return nil
//	}
//
// A test calls the handler as a function, without a cluster:
//
//	got := facadetest.NewChange(db).Call(t.Context(), provision)
//	if got.Err != nil || got.Object.Status.Host == "" {
//		t.Errorf("got %+v", got)
//	}
//
// Handlers are retried until they succeed, also across restarts, so they must be idempotent. Progress is stored on the
// object. Handlers get copies of the object: change it with Patch. Registration never panics: the setup reports all
// errors at once.
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
//   - Divide the work: [Change.Sub], [Change.RunSubs], [Change.Outcome], [After], [AfterFinished], [LifecycleFunc].
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
// The folder docs has a page for each topic, and the folder examples has complete programs.
package kopf
