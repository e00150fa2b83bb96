// Package explorer kills an operator at every point that can matter, restarts it, and verifies that its objects reach
// the same state as without the kill. [Explore] is its main entry point.
//
//	func TestSurvivesEveryCut(t *testing.T) {
//		explorer.Explore(t, func() explorer.Scenario {
//			cloud := newFakeCloud()
//			return explorer.Scenario{
//				Operator: func(life *explorer.Life) *kopf.Operator { return newOperator(cloud.of(life)) },
//				Play: func(p *explorer.Play) {
//					p.Create(&v1.Database{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "orders"}})
//				},
//				Outside: func() any { return cloud.volumes },
//			}
//		})
//	}
//
// A [Scenario] is first played without troubles. That run yields its points: before and after each write and each
// effect outside of the cluster, before each read of a handler, and at the return of each handler. The scenario is then
// played on many courses: with a kill at a point, with a disturbance of the API at a write, or with both. All courses
// run in virtual time, against an API server in memory.
//
// The package tests complete operators, in contrast to tests of single handlers: whatever fails, all work must be
// completed, and nothing may run twice without a reason. It starts and kills operators with facadetest.Start and
// Runner.Kill only.
//
// # Flags
//
// The flags are arguments of go test, after the package. Each can also be set by an environment variable: go test ./...
// passes a flag to all packages, and test binaries without this package reject it.
//
//	-explorer.course   EXPLORER_COURSE    play only this course, whose name is in a failure
//	-explorer.courses  EXPLORER_COURSES   the number of courses, or "all"
//	-explorer.time     EXPLORER_TIME      play random courses for this time, such as 5m
//	-explorer.seed     EXPLORER_SEED      the seed of the choice; default 1, or a new one with -explorer.time
//
// Package facadetest runs the operators, memapi is the API server, and facade/facadetest/internal/normal removes the
// differences between runs.
package explorer
