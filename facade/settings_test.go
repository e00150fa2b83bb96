package kopf_test

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/internal/conditions"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// engineOptions returns the options of the engine, without those that cannot be compared.
func engineOptions(t *testing.T, op *kopf.Operator) reconcilers.Options {
	t.Helper()
	kopf.For(op, &Widget{}).OnCreate("fn", succeed)
	if _, err := kopf.Plan(op, newScheme(t)); err != nil {
		t.Fatal(err)
	}
	options := kopf.EngineOptions(op)
	options.Metrics, options.StartLogValues = nil, nil
	return options
}

// withDefaults sets the options that are the same for all operators.
func withDefaults(o reconcilers.Options) reconcilers.Options {
	o.Name = "test.example.org"
	o.Workers, o.Backoff, o.Checkpoint, o.Ticks = 100, time.Minute, time.Second, 1000
	o.CancelPolling, o.InstantExit = time.Minute, 10*time.Millisecond
	o.Watching.ReconnectBackoff, o.Watching.InactivityTimeout = 100*time.Millisecond, 70*time.Second
	o.Posting.PerSecond = 10
	o.ExitTimeout, o.PauseTimeout, o.StuckTimeout = 2*time.Second, 30*time.Second, 10*time.Minute
	for _, seconds := range []int{1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610} {
		o.ErrorDelays = append(o.ErrorDelays, time.Duration(seconds)*time.Second)
	}
	o.Conditions = conditions.Types{Ready: "Ready", Reconciling: "Reconciling", Stalled: "Stalled",
		Paused: "HandlingPaused", WritesObservedGeneration: true}
	return o
}

// TestSettings shows how the settings become options of the engine.
func TestSettings(t *testing.T) {
	own := withDefaults(reconcilers.Options{
		Settings: reconcilers.Settings{
			Prefix:    "test.example.org",
			Finalizer: "test.example.org/finalizer",
			BoundTo:   "test.example.org/handled-uid",
			Diffbase: diffbase.Annotations{
				Prefix: "test.example.org", WithoutV1: true, Bound: "test.example.org/handled-uid",
			},
			Progress: progress.Annotations{
				Prefix: "test.example.org", WithoutV1: true, Bound: "test.example.org/handled-uid",
			},
			CompactSubs: true,
			Digests:     reconcilers.Digests{Limit: 100 * 1024, Secrets: true},
		},
	})
	with := func(change func(*reconcilers.Options)) reconcilers.Options {
		o := own
		change(&o)
		return o
	}
	cases := map[string]struct {
		reason string
		input  kopf.Settings
		want   reconcilers.Options
	}{
		"defaults": {"by default, all names have the operator's name as their prefix", kopf.Settings{}, own},
		"as Kopf": {"AsKopf uses Kopf's names, and writes nothing else", kopf.AsKopf(),
			withDefaults(reconcilers.Options{
				Settings: reconcilers.Settings{
					Prefix:        "kopf.zalando.org",
					Finalizer:     "kopf.zalando.org/KopfFinalizerMarker",
					Diffbase:      diffbase.Annotations{Prefix: "kopf.zalando.org"},
					Progress:      progress.Smart{Prefix: "kopf.zalando.org"},
					KopfTexts:     true,
					KopfDeletions: true,
				},
				Posting: reconcilers.Posting{Component: "kopf", Plain: true},
			})},
		"namespaces": {"a namespace that is given twice is served once",
			kopf.Settings{Namespaces: []string{"b", "a", "b"}},
			with(func(o *reconcilers.Options) {
				o.Namespaces = namespaces.Patterns{namespaces.ParsePattern("a"), namespaces.ParsePattern("b")}
			})},
		"patterns": {"namespace patterns of both forms reach the engine", kopf.Settings{
			Namespaces: []string{"a-*"}, NamespacePatterns: []*regexp.Regexp{regexp.MustCompile("b-.+")},
		}, with(func(o *reconcilers.Options) {
			o.Namespaces = namespaces.Patterns{
				namespaces.ParsePattern("a-*"), namespaces.PatternFromRegexp(regexp.MustCompile("b-.+")),
			}
		})},
		"numbers": {"numbers reach the engine unchanged", kopf.Settings{
			Queueing: kopf.QueueingSettings{WorkerLimit: 3, ErrorDelays: []time.Duration{time.Hour}},
			Execution: kopf.ExecutionSettings{
				DefaultBackoff: time.Second, Checkpoint: time.Minute, Lifecycle: kopf.ASAP,
			},
			Background: kopf.BackgroundSettings{
				CancellationPolling: time.Hour, InstantExitTimeout: time.Second, MaxConcurrentDaemons: 5,
				MaxConcurrentTicks: 6,
			},
			Networking: kopf.NetworkingSettings{
				ErrorBackoffs: []time.Duration{time.Second, time.Minute}, EnforceRetryAfter: true,
			},
			Posting: kopf.PostingSettings{Disabled: true}, ScanningDisabled: true,
		}, with(func(o *reconcilers.Options) {
			o.Workers, o.Backoff, o.Checkpoint, o.Lifecycle = 3, time.Second, time.Minute, handlers.ASAP
			o.ErrorDelays = []time.Duration{time.Hour}
			o.APIBackoffs, o.ObeyRetryAfter = []time.Duration{time.Second, time.Minute}, true
			o.Daemons, o.Ticks, o.CancelPolling, o.InstantExit = 5, 6, time.Hour, time.Second
			o.NoPosting, o.ScanOnce = true, true
		})},
		"no error delays": {"an empty list of error delays is not replaced by the default",
			kopf.Settings{Queueing: kopf.QueueingSettings{ErrorDelays: []time.Duration{}}},
			with(func(o *reconcilers.Options) { o.ErrorDelays = []time.Duration{} })},
		"named durations": {"named durations become the values of the engine", kopf.Settings{
			Execution:  kopf.ExecutionSettings{DefaultBackoff: kopf.Immediately},
			Background: kopf.BackgroundSettings{CancellationPolling: kopf.Never},
		}, with(func(o *reconcilers.Options) { o.Backoff, o.CancelPolling = -1, 1<<63-1 })},
		"connection": {"the settings of watches and requests reach the engine", kopf.Settings{
			Watching: kopf.WatchingSettings{
				ServerTimeout: time.Minute, ClientTimeout: time.Hour, InactivityTimeout: 2 * time.Minute,
				ReconnectBackoff: time.Second,
			},
			Networking: kopf.NetworkingSettings{RequestTimeout: 3 * time.Minute},
			Queueing:   kopf.QueueingSettings{ExitTimeout: 4 * time.Second, StuckTimeout: time.Hour},
		}, with(func(o *reconcilers.Options) {
			o.Watching = reconcilers.Watching{
				ServerTimeout: time.Minute, ClientTimeout: time.Hour, InactivityTimeout: 2 * time.Minute,
				ReconnectBackoff: time.Second,
			}
			o.RequestTimeout, o.ExitTimeout, o.StuckTimeout = 3*time.Minute, 4*time.Second, time.Hour
		})},
		"no limits": {"missing limits are negative in the engine", kopf.Settings{
			Watching: kopf.WatchingSettings{
				ServerTimeout: kopf.Never, ClientTimeout: kopf.Never, InactivityTimeout: kopf.Never,
				ReconnectBackoff: kopf.Immediately,
			},
			Networking: kopf.NetworkingSettings{RequestTimeout: kopf.Never},
			Queueing:   kopf.QueueingSettings{ExitTimeout: kopf.Immediately, StuckTimeout: kopf.Never},
		}, with(func(o *reconcilers.Options) {
			o.Watching = reconcilers.Watching{
				ServerTimeout: kopf.Never, ClientTimeout: kopf.Never, InactivityTimeout: kopf.Never,
				ReconnectBackoff: kopf.Immediately,
			}
			o.RequestTimeout, o.ExitTimeout, o.StuckTimeout = kopf.Never, kopf.Immediately, kopf.Never
		})},
		"default value": {"a setting with its default value changes nothing",
			kopf.Settings{Peering: kopf.PeeringSettings{Standalone: true}}, own},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := engineOptions(t, kopf.New("test.example.org", c.input))
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s\n-want, +got:\n%s", c.reason, d)
			}
		})
	}
}

// TestWrongSettings shows that all wrong settings are reported at once.
func TestWrongSettings(t *testing.T) {
	const unit, least = time.Duration(1), -time.Second
	op := kopf.New("test.example.org", kopf.Settings{
		Namespaces:  []string{"Team_A"},
		AddToScheme: runtime.SchemeBuilder{addWidgets, nil},
		Queueing: kopf.QueueingSettings{
			WorkerLimit: -1, ExitTimeout: kopf.Never, ErrorDelays: []time.Duration{time.Second, 0},
		},
		Watching: kopf.WatchingSettings{ServerTimeout: least, InactivityTimeout: 70 * unit},
		Execution: kopf.ExecutionSettings{
			DefaultBackoff: 60 * unit, Checkpoint: kopf.Never, Lifecycle: kopf.LifecycleFunc(nil),
		},
		Background: kopf.BackgroundSettings{
			CancellationPolling: least, InstantExitTimeout: least, MaxConcurrentDaemons: -1, MaxConcurrentTicks: -2,
		},
		Networking: kopf.NetworkingSettings{ErrorBackoffs: []time.Duration{30 * unit}},
	})
	_, err := kopf.Plan(op, newScheme(t))
	if err == nil {
		t.Fatal("wrong settings must be an error")
	}
	for _, want := range []string{
		"15 mistakes", "facade/settings_test.go:",
		`kopf.New: Namespaces: "Team_A" is not the name of a namespace`,
		"kopf.New: AddToScheme[1]: the function is nil",
		"kopf.New: Queueing.WorkerLimit: -1: it must be positive, or zero for the default of 100",
		"kopf.New: Queueing.ErrorDelays[1]: 0s is not positive: the API server would be asked again and again",
		"kopf.New: Execution.DefaultBackoff: 60ns: did you mean 60*time.Second?",
		"kopf.New: Queueing.ExitTimeout: kopf.Never: it must be positive, or zero for the default of 2s, or " +
			"kopf.Immediately",
		"kopf.New: Watching.ServerTimeout: -1s: it must be positive, or zero for the default, or kopf.Never",
		"kopf.New: Watching.InactivityTimeout: 70ns: did you mean 70*time.Second?",
		"kopf.New: Execution.Checkpoint: kopf.Never: it must be positive, or zero for the default of 1s",
		"kopf.New: Execution.Lifecycle: LifecycleFunc: the function is nil",
		"kopf.New: Background.CancellationPolling: -1s: it must be positive, or zero for the default of 1m0s, or " +
			"kopf.Never",
		"kopf.New: Background.InstantExitTimeout: -1s: it must be positive, or zero for the default of 10ms",
		"kopf.New: Background.MaxConcurrentDaemons: -1: it must be positive, or zero for no limit",
		"kopf.New: Background.MaxConcurrentTicks: -2: it must be positive, or zero for the default of 1000",
		"kopf.New: Networking.ErrorBackoffs[0]: 30ns: did you mean 30*time.Second?",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("want %q in the error, got: %v", want, err)
		}
	}
}

// TestWrongNumbers shows that every duration and every number is checked before it reaches the engine.
func TestWrongNumbers(t *testing.T) {
	named := map[string]time.Duration{
		"Peering.ClockSkew": kopf.Immediately, "Peering.TakeOverWait": kopf.Immediately,
		"Peering.PauseTimeout":     kopf.Immediately,
		"Execution.DefaultBackoff": kopf.Immediately, "Background.CancellationPolling": kopf.Never,
		"Watching.ServerTimeout": kopf.Never, "Watching.ClientTimeout": kopf.Never,
		"Watching.ReconnectBackoff": kopf.Immediately, "Watching.InactivityTimeout": kopf.Never,
		"Queueing.ExitTimeout": kopf.Immediately, "Networking.RequestTimeout": kopf.Never,
		"Networking.ConnectTimeout": kopf.Never, "Watching.ConnectTimeout": kopf.Never,
		"UltimateExitingTimeout": kopf.Never, "CleanupTimeout": kopf.Never,
		"Queueing.StuckTimeout": kopf.Never,
	}
	var given kopf.Settings
	for name, field := range fieldsOf(reflect.ValueOf(&given).Elem(), "") {
		set := func(value int64) string {
			field.SetInt(value)
			defer field.SetInt(0)
			_, err := kopf.Plan(kopf.New("test.example.org", given), newScheme(t))
			return fmt.Sprint(err)
		}
		switch {
		case field.Kind() != reflect.Int && field.Kind() != reflect.Int64, name == "Peering.Priority",
			name == "Posting.Level":
			continue
		case field.Type() == reflect.TypeFor[time.Duration]():
			for value, want := range map[time.Duration]string{
				60: "60ns: did you mean 60*time.Second?", -time.Second: "-1s: it must be positive",
				kopf.Never:       "kopf.Never: it must be positive",
				kopf.Immediately: "kopf.Immediately: it must be positive",
			} {
				if value == named[name] {
					want = "<nil>"
				}
				if got := set(int64(value)); !strings.Contains(got, want) {
					t.Errorf("%s of %d: want %q, got: %s", name, value, want, got)
				}
			}
		default:
			if got := set(-1); !strings.Contains(got, name+": -1: ") {
				t.Errorf("%s of -1: %s", name, got)
			}
		}
	}
}

// TestSettingsAreTheOperatorsOwn shows that a caller can change its settings after kopf.New, for another operator.
func TestSettingsAreTheOperatorsOwn(t *testing.T) {
	given := kopf.Settings{
		Namespaces: []string{"a"}, AddToScheme: runtime.SchemeBuilder{addWidgets},
		Queueing:   kopf.QueueingSettings{ErrorDelays: []time.Duration{time.Second}},
		Networking: kopf.NetworkingSettings{ErrorBackoffs: []time.Duration{time.Second}},
		Persistence: kopf.PersistenceSettings{
			IgnoredFields: []string{"spec.size"}, DigestKey: []byte("k"), FormerDigestKeys: [][]byte{[]byte("f")},
		},
	}
	op := kopf.New("test.example.org", given)
	want := engineOptions(t, kopf.New("test.example.org", given))
	given.Namespaces[0], given.AddToScheme[0] = "b", nil
	given.Queueing.ErrorDelays[0], given.Networking.ErrorBackoffs[0] = -1, -1
	given.Persistence.IgnoredFields[0] = ""
	given.Persistence.DigestKey[0], given.Persistence.FormerDigestKeys[0][0] = 'x', 'x'
	if d := cmp.Diff(want, engineOptions(t, op)); d != "" {
		t.Errorf("later changes by the caller must not count: -want, +got:\n%s", d)
	}
}

// TestSpecialDurations shows that the settings below the facade have the same special durations.
func TestSpecialDurations(t *testing.T) {
	if kopf.Never != defaults.Never || kopf.Immediately != defaults.Immediately {
		t.Errorf("%d and %d differ from %d and %d", kopf.Never, kopf.Immediately, defaults.Never, defaults.Immediately)
	}
}
