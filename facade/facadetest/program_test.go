package facadetest_test

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// TestBeingAProgram is the program of the other tests: this test binary in a separate process.
func TestBeingAProgram(*testing.T) {
	manner := os.Getenv("FACADETEST_MANNER")
	if manner == "" {
		return // this is the test run, not the program
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	fmt.Println("for", config, err)
	fmt.Fprintln(os.Stderr, "at work:", os.Args[len(os.Args)-1])
	for manner != "failing" {
		<-asked
		if manner == "obedient" {
			fmt.Println("goodbye")
			os.Exit(0)
		}
	}
	os.Exit(3)
}

func startTestProgram(t testing.TB, manner string, options ...facadetest.RunnerOption) *facadetest.Runner {
	t.Helper()
	return facadetest.StartProgram(t, os.Args[0], append(options,
		facadetest.Args("-test.run=^TestBeingAProgram$", "last"), facadetest.Env("FACADETEST_MANNER="+manner),
	)...)
}

func TestAProgram(t *testing.T) {
	r := startTestProgram(t, "obedient", facadetest.Against(&rest.Config{Host: "https://there.example.org"}))
	r.Await("at work: last", time.Minute)
	if err := r.Stop(); err != nil || r.ExitCode() != 0 {
		t.Errorf("an obedient program must end without an error: %v, exit code %d", err, r.ExitCode())
	}
	if !strings.Contains(r.Stdout(), "https://there.example.org") {
		t.Errorf("the program must get the kubeconfig of the cluster; it writes\n%s", r.Stdout())
	}
	if r.Stderr() != "at work: last\n" || !strings.HasSuffix(r.Stdout(), "goodbye\n") ||
		!strings.Contains(r.Output(), "goodbye") || !strings.Contains(r.Output(), "at work") {
		t.Errorf("the outputs must be kept apart and together: stdout\n%s\nstderr\n%s\nboth\n%s",
			r.Stdout(), r.Stderr(), r.Output())
	}
}

func TestProgramsThatFail(t *testing.T) {
	cases := map[string]struct {
		reason string
		test   func(t testing.TB)
		want   []string
	}{
		"Failing": {
			reason: "an exit code that the test does not check fails the test",
			test:   func(t testing.TB) { <-startTestProgram(t, "failing").Ended() },
			want:   []string{"has ended by itself: exit status 3", "at work: last"},
		},
		"Stubborn": {
			reason: "a process that ignores the signal is killed and reported",
			test: func(t testing.TB) {
				startTestProgram(t, "stubborn", facadetest.StopWithin(time.Millisecond)).Await("at work", time.Minute)
			},
			want: []string{"has not stopped in 1ms: killed"},
		},
		"NotThere": {
			reason: "a program that does not exist ends the test at once",
			test:   func(t testing.TB) { facadetest.StartProgram(t, "./not-there") },
			want:   []string{"facadetest: starting ./not-there: "},
		},
		"NotReady": {
			reason: "Ready fails for a program and suggests Await",
			test:   func(t testing.TB) { startTestProgram(t, "obedient").Ready() },
			want:   []string{"call Await with a text"},
		},
		"NotSettled": {
			reason: "Settle fails for a program and suggests Await",
			test:   func(t testing.TB) { startTestProgram(t, "obedient").Settle(time.Hour, time.Hour) },
			want:   []string{"Settle is for operators in the process of the test: use Await"},
		},
		"InMemory": {
			reason: "an API server in memory is an error for a program",
			test: func(t testing.TB) {
				startTestProgram(t, "obedient", facadetest.Against(memapi.Config(memapi.New())))
			},
			want: []string{"a program cannot be connected to an API server in memory"},
		},
		"NotBuilt": {
			reason: "an error of the compiler is reported",
			test:   func(t testing.TB) { facadetest.Build(t, "./not-there") },
			want:   []string{"facadetest: building ./not-there: ", "directory not found"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := failuresOf(t, tc.test)
			for _, want := range tc.want {
				if !strings.Contains(got, want) {
					t.Errorf("%s: the failure lacks %q:\n%s", tc.reason, want, got)
				}
			}
		})
	}
}
