package console_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/console"
)

// cutOff is a stream that ends in the middle of an event.
type cutOff struct{}

func (cutOff) Decode() (watch.EventType, runtime.Object, error) { return "", nil, io.ErrUnexpectedEOF }

func (cutOff) Close() {}

// TestLibraryMessages shows that messages of libraries need the level Debug, while their warnings and errors are
// always shown.
func TestLibraryMessages(t *testing.T) {
	const always, debugging = true, false
	cases := map[string]struct {
		reason string
		log    func(log logr.Logger)
		shown  bool
	}{
		"watch": {"the end of a watch is shown when debugging", func(log logr.Logger) {
			reporter := apierrors.NewClientErrorReporter(500, "GET", "watch")
			for range watch.NewStreamWatcherWithLogger(log, cutOff{}, reporter).ResultChan() {
				t.Error("an event")
			}
		}, debugging},
		"request for an object": {"a message with a logger from the context is shown when debugging",
			func(log logr.Logger) {
				ctx := klog.NewContext(t.Context(), log.WithName("op").WithValues("name", "w1"))
				backoff := &rest.URLBackoff{Backoff: flowcontrol.NewBackOff(time.Second, time.Second)}
				backoff.UpdateBackoffWithContext(ctx, &url.URL{Host: "server"}, nil, http.StatusNotFound)
			}, debugging},
		"error": {"an error of a library is always shown", func(log logr.Logger) {
			utilruntime.HandleErrorWithLogger(log, io.ErrUnexpectedEOF, "text")
		}, always},
		"warning of the API server": {"a warning of the API server is always shown", func(log logr.Logger) {
			ctx := logf.IntoContext(t.Context(), log)
			logf.NewKubeAPIWarningLogger(logf.KubeAPIWarningLoggerOptions{}).HandleWarningHeaderWithContext(
				ctx, 299, "", "unknown field",
			)
		}, always},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for _, verbosity := range []console.Verbosity{
				console.Quiet, console.Normal, console.Verbose, console.Debug,
			} {
				var out, own bytes.Buffer
				c.log(console.New(&out, console.Options{Verbosity: verbosity}))
				c.log(console.NewForHandler(ownText(&own, slog.LevelDebug), io.Discard, console.Options{Verbosity: verbosity}))
				shown := c.shown || verbosity == console.Debug
				for _, text := range []string{out.String(), own.String()} {
					if (strings.TrimSpace(text) != "") != shown {
						t.Errorf("%s: verbosity %d, want a line: %t, got %q", c.reason, verbosity, shown, text)
					}
				}
			}
		})
	}
}

// TestLinesOfKlog shows that all lines of klog count as lines of libraries, also those of the program. Klog has one
// logger per process, so this is one test.
func TestLinesOfKlog(t *testing.T) {
	var out bytes.Buffer
	console.ForwardKlog(console.New(&out, console.Options{Format: console.Plain, Verbosity: console.Verbose}), false)
	t.Cleanup(klog.ClearLogger)
	klog.InfoS("Chatter", "by", "the program itself")
	klog.Info("Chatter of the old kind")
	klog.InfoS("Warning: watch out", "n", 1)
	klog.Warning("Look out")
	klog.ErrorS(io.ErrUnexpectedEOF, "Failed")
	want := "Warning: watch out n=1\nLook out\nFailed error=\"unexpected EOF\"\n"
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
}

// librariesOutput outlives a test: controller-runtime keeps the first logger that is set.
var librariesOutput bytes.Buffer

// TestFailedHealthChecks shows that a failed health check is logged with its name, which the type of
// controller-runtime does not show.
func TestFailedHealthChecks(t *testing.T) {
	logf.SetLogger(console.New(&librariesOutput, console.Options{})) // permanently: this package needs no other
	librariesOutput.Reset()
	checks := &healthz.Handler{Checks: map[string]healthz.Checker{
		"shop/watches": func(*http.Request) error { return io.ErrUnexpectedEOF },
	}}
	checks.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	if want := "{name:shop/watches healthy:false"; !strings.Contains(librariesOutput.String(), want) {
		t.Errorf("want %q in the line, got %q", want, librariesOutput.String())
	}
}
