package layers

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
)

// GuardedFunc is one function of a product that enters users' code, and so guards against panics by package
// internal/panics. All other functions rely on the doors.
type GuardedFunc struct {
	// File and Func are where it is, as in "Type.Method".
	File, Func string
	// UserCode says which code of users is entered.
	UserCode string
	// Test is the test of a panic there, as "folder.TestName".
	Test string
}

// GuardedFuncs is the list of this repository.
var GuardedFuncs = []GuardedFunc{
	{"reconcilers/adapters/outcome.go", "Recovery",
		"functions of handlers: changes, events, daemons, timers, admission, indices, activities, sub-handlers",
		"reconcilers/adapters.TestWholeChain"},
	{"reconcilers/adapters/logging.go", "containPanics", "the logger, for the lines of an attempt",
		"reconcilers/adapters.TestAttemptsOutliveLogging"},
	{"internal/execution/outcome.go", "ContainPanic",
		"methods of errors: RetryAfter, Permanent, Undecodable, Status",
		"reconcilers/adapters.TestErrorsThatPanic"},
	{"internal/execution/pick_function.go", "pickByFunction", "lifecycles: Settings.Execution.Lifecycle",
		"internal/execution.TestPickByFunction"},
	{"internal/handlers/criteria.go", "Handler.CallCriterion", "filters, also of children, and patterns of values",
		"internal/handlers.TestPrematch"},
	{"internal/patching/patch.go", "ContainPanics", "functions of Patch, when they are applied for a write",
		"internal/patching.TestContainedFunctions"},
	{"reconcilers/owned/waits.go", "pendingWait.evaluateCondition", "conditions of WaitFor",
		"reconcilers/owned.TestPanicOfAWait"},
	{"internal/cause/cause.go", "Lens.withoutProgress", "Clear of progress storages",
		"reconcilers/changes.TestStoragesThatPanic"},
	{"internal/storages/isolation.go", "containPanic", "methods of storages that return an error",
		"internal/storages.TestStoragesThatPanicChangeNothing"},
	{"internal/storages/isolation.go", "ProbeProgress", "Purge of progress storages, at the set-up",
		"internal/storages.TestProbeOfAStorageThatPanics"},
	{"internal/execution/state.go", "purgeRecord", "Purge of progress storages",
		"reconcilers/changes.TestStoragesThatPanic"},
	{"facade/internal/draining/traces.go", "Drain.tracesOf", "methods of storages, in the command drain",
		"facade.TestDrainWithAStorageThatPanics"},
	{"reconcilers/changes/object.go", "object.removeTouch", "Touch of progress storages",
		"reconcilers/changes.TestTakeovers"},
	{"reconcilers/internal/controller/reconcile.go", "Controller.runRequestSafely",
		"the logger of the project's manager, in all of a pass",
		"reconcilers/internal/controller.TestPanicsOfPassesAreContained"},
	{"facade/selection.go", "ForResourceFunc", "functions of ForResourceFunc",
		"facade.TestAFunctionThatPanicsSelectsNothing"},
	{"facade/background.go", "InitialDelay", "functions of InitialDelay",
		"facade.TestInitialDelayThatPanics"},
	{"facade/internal/codec/call.go", "Call", "functions of Patch and TryPatch, when a handler calls them",
		"facade.TestTryPatch"},
	{"facade/internal/codec/fields.go", "Codec.CheckValue", "UnmarshalJSON of objects' types, at the set-up",
		"facade/internal/codec.TestTypesThatPanic"},
	{"facade/internal/codec/original.go", "Original.contentOf",
		"MarshalJSON of objects' types, in the search for lost changes", "facade/internal/codec.TestTypesThatPanic"},
	{"facade/internal/console/user_handler.go", "userHandler.containFailure", "Settings.LogHandler",
		"facade/internal/console.TestOwnHandlerThatFails"},
	{"facade/internal/console/values.go", "logRepresentation", "MarshalLog of logged values",
		"facade/internal/console.TestLogSurvivesValuesThatPanic"},
	{"facade/internal/console/values.go", "encodeJSON", "MarshalJSON of logged values",
		"facade/internal/console.TestLogSurvivesValuesThatPanic"},
	{"facade/internal/console/values.go", "valueText", "Error and String of logged values",
		"facade/internal/console.TestLogSurvivesValuesThatPanic"},
	{"webhooks/admission/reachability.go", "WebhookServer.keepTunnel", "tunnels", "webhooks/admission.TestTunnelFails"},
	{"webhooks/internal/server/registration.go", "Server.registerAt", "the webhook server of the project's manager",
		"webhooks/internal/server.TestRegisterPanics"},
	{"webhooks/internal/server/http_handler.go", "Server.callReviewer",
		"the logger of the project's manager, in all of a review",
		"webhooks/internal/server.TestPanic"},
}

// guardPackage is the package of the guards, and guards are its functions that are guards.
const guardPackage = "internal/panics"

var guardFuncs = []string{"Contain", "TextOf"}

// guardedIn lists the functions of the file that use a guard: one of package panics, or recover.
func guardedIn(positions *token.FileSet, parsed *ast.File) (found []Func) {
	for _, decl := range parsed.Decls {
		function, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		ast.Inspect(function, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if ok && isGuard(call.Fun) {
				found = append(found, Func{Name: funcName(function), Line: positions.Position(call.Pos()).Line})
			}
			return true
		})
	}
	return found
}

func isGuard(called ast.Expr) bool {
	switch called := called.(type) {
	case *ast.Ident:
		return called.Name == "recover"
	case *ast.SelectorExpr:
		from, ok := called.X.(*ast.Ident)
		return ok && from.Name == "panics" && slices.Contains(guardFuncs, called.Sel.Name)
	}
	return false
}

const unlistedMessage = " guards against panics, but is not a door of test/layers/panic_guards.go: leave that to the " +
	"door that enters users' code"

// CheckPanicGuards checks the guards against panics in products: each is at a door of the list, each door has one, and
// its test exists.
func CheckPanicGuards(tree *Tree, plan Plan, doors []GuardedFunc) (found []Breach) {
	used, tests := map[[2]string]bool{}, map[string]bool{}
	for _, p := range tree.Packages {
		place, planned := plan.ruleFor(p.Dir)
		for _, f := range p.Files {
			if f.IsTest {
				for _, function := range f.Funcs {
					tests[p.Dir+"."+function.Name] = true
				}
				continue
			}
			if p.Dir == guardPackage || p.IsNested || !planned || place.IsTestKit || place.Layer >= layerExamples {
				continue
			}
			for _, guard := range f.Guards {
				used[[2]string{f.Path, guard.Name}] = true
				listed := func(d GuardedFunc) bool { return d.File == f.Path && d.Func == guard.Name }
				if !slices.ContainsFunc(doors, listed) {
					found = append(found, Breach{fmt.Sprintf("%s:%d", f.Path, guard.Line),
						guard.Name + unlistedMessage})
				}
			}
		}
	}
	for _, d := range doors {
		if !used[[2]string{d.File, d.Func}] {
			found = append(found, Breach{d.File,
				d.Func + " is a door of test/layers/panic_guards.go, but has no guard"})
		}
		if !tests[d.Test] {
			found = append(found, Breach{d.File, "the test " + d.Test + " of the door " + d.Func + " does not exist"})
		}
	}
	return found
}
