// Package explorer kills an operator at every moment that could matter, starts it again, and looks whether its objects
// end up as if nothing had happened.
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
// A [Scenario] is played once in peace, which gives its points: before and after each write and each effect outside of
// the cluster, before each read of a handler, and at each return of one. Then it is played anew on many courses: with
// the operator killed at each point, with a disturbance of the API at a write, with both. All of it is in virtual time,
// against an API server in memory.
//
// It is apart because it asks one question of whole operators: whatever dies, and whatever goes wrong with it, is
// everything done in the end, and nothing twice that must not be? It never starts an operator in a way of its own: that
// is facadetest.Start, and the end of a life is Runner.Kill.
//
// # Flags
//
// They are for go test, after the package. Each has a variable for the environment beside it, as go test ./... gives a
// flag to all packages, and those without the explorer refuse it.
//
//	-explorer.course   EXPLORER_COURSE    play this course alone: a failure has its name
//	-explorer.courses  EXPLORER_COURSES   how many courses are played, or all
//	-explorer.time     EXPLORER_TIME      play courses at random for so long, such as 5m
//	-explorer.seed     EXPLORER_SEED      which ones: 1 unless it is given; with a time, another one each time
//
// Neighbours: facadetest runs the operators, memapi is the API server, and facade/facadetest/internal/normal removes
// the differences between runs.
package explorer
