package kopf_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels"
)

// widgetKind is shared, so that settings with it can be compared.
var widgetKind = &Widget{}

// setUncommonValue sets the field to a valid value that is not its default.
func setUncommonValue(t *testing.T, s *kopf.Settings, name string) {
	t.Helper()
	field := fieldsOf(reflect.ValueOf(s).Elem(), "")[name]
	for _, value := range []any{
		"other.example.org/one", true, 7, 3 * time.Second, []time.Duration{time.Second},
		[]byte(strings.Repeat("k", 32)),
		[][]byte{[]byte(strings.Repeat("f", 32))}, kopf.ASAP, slog.LevelWarn, diffbase.Status{}, progress.Status{},
		slog.DiscardHandler, []client.Object{widgetKind},
		[]func(*runtime.Scheme) error{clientgoscheme.AddToScheme}, noop.NewTracerProvider(),
	} {
		if v := reflect.ValueOf(value); v.Type() == field.Type() || field.Kind() == reflect.Interface &&
			v.Type().Implements(field.Type()) {
			field.Set(v)
			break
		}
	}
	switch name {
	case "Admission.Managed":
		s.Admission = kopf.AdmissionSettings{Managed: "auto.kopf.dev", URL: "https://here"}
	case "Admission.URL":
		field.SetString("https://192.168.1.5:9443")
	case "Admission.Service":
		field.SetString("team-a/webhook")
	case "Admission.Secret":
		s.Admission = kopf.AdmissionSettings{Secret: "team-a/certificate", URL: "https://here"}
	case "Tracing.Apart":
		s.Tracing.Provider = noop.NewTracerProvider()
	case "ConditionsDomain":
		field.SetString("other.example.org")
	case "Admission.Address":
		field.SetString("127.0.0.1")
	case "Admission.DetectCluster":
		s.Admission = kopf.AdmissionSettings{Managed: "auto.kopf.dev", DetectCluster: true}
	case "Admission.Tunnel":
		s.Admission = kopf.AdmissionSettings{Managed: "auto.kopf.dev", Tunnel: tunnels.Detecting{}}
	case "Admission.Server":
		field.Set(reflect.ValueOf(&portlessServer{}))
	case "Admission.RequireClientCertificate":
		s.Admission = kopf.AdmissionSettings{ClientCA: "clients.crt", RequireClientCertificate: true}
	case "Posting.EventNamePrefix":
		field.SetString("other-")
	case "Namespaces", "Admission.ExcludedNamespaces", "Execution.FormerManagers":
		field.Set(reflect.ValueOf([]string{"team-a"}))
	case "Admission.CAFile":
		field.SetString("ca.crt")
	case "Admission.CABundle":
		field.SetBytes([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"))
	case "Admission.ExtraHosts":
		field.Set(reflect.ValueOf([]string{"extra.example.org"}))
	case "Admission.TLSOpts":
		field.Set(reflect.ValueOf([]func(*tls.Config){func(*tls.Config) {}}))
	case "NamespaceLabels":
		field.SetString("team=a")
	case "NamespacePatterns":
		field.Set(reflect.ValueOf([]*regexp.Regexp{regexp.MustCompile("a.+")}))
	case "Persistence.IgnoredFields":
		field.Set(reflect.ValueOf([]string{"spec.size"}))
	case "Persistence.AnnotationPrefix", "Peering.Name":
		field.SetString("other.example.org")
	case "Persistence.FormerDigestKeys":
		s.Persistence.DigestKey = []byte(strings.Repeat("k", 32)) // former keys require a present one
	}
	if field.IsZero() {
		t.Fatalf("%s: no value is known for the type %s", name, field.Type())
	}
}

// effectiveSettings holds the settings in all the forms in which the program uses them: those of the engine, those of
// the connection, and the resolved ones.
type effectiveSettings struct {
	engine     reconcilers.Options
	connection credentials.Configuration
	fields     map[string]string
}

func effectiveSettingsOf(op *kopf.Operator) effectiveSettings {
	s := effectiveSettings{kopf.EngineOptions(op), kopf.ConnectionOf(op), map[string]string{}}
	s.engine.Metrics, s.engine.Fence, s.engine.OnGone, s.engine.Dependents = nil, nil, nil,
		nil // each operator has its own
	s.engine.MatchingNamespaces = nil
	own := kopf.ResolvedSettings(op)
	for name, field := range fieldsOf(reflect.ValueOf(&own).Elem(), "") {
		s.fields[name] = fmt.Sprintf("%+v", field.Interface())
	}
	return s
}

// wantSame compares the effects of the settings of both operators.
func wantSame(t *testing.T, name string, given, changed *kopf.Operator) {
	t.Helper()
	if d := cmp.Diff(effectiveSettingsOf(given), effectiveSettingsOf(changed),
		cmp.AllowUnexported(effectiveSettings{})); d != "" {
		t.Errorf("%s: -kopf.New, +OnStartup:\n%s", name, d)
	}
}

// newChangingOperator returns an operator that sets one field in a startup handler, and keeps the settings.
func newChangingOperator(t *testing.T, name string, kept **kopf.Settings) *kopf.Operator {
	t.Helper()
	op := newCreationOperator(succeed)
	op.OnStartup("a", func(_ context.Context, s *kopf.Activity) error {
		setUncommonValue(t, s.Settings, name)
		if kept != nil {
			*kept = s.Settings
		}
		return nil
	}, kopf.Retries(1))
	return op
}

// eachSetting calls a test with each setting, and with an operator that was given the setting. Wrong is the error of
// that operator, if any.
func eachSetting(t *testing.T, test func(t *testing.T, name string, given *kopf.Operator, wrong error)) {
	t.Helper()
	var empty kopf.Settings
	all := fieldsOf(reflect.ValueOf(&empty).Elem(), "")
	if len(all) < 40 {
		t.Fatalf("only %d settings were found", len(all))
	}
	for name := range all {
		t.Run(name, func(t *testing.T) {
			var s kopf.Settings
			setUncommonValue(t, &s, name)
			given := kopf.New("test.example.org", s)
			kopf.For(given, &Widget{}).OnCreate("fn", succeed)
			_, err := kopf.Plan(given, newScheme(t))
			if err != nil {
				t.Errorf("kopf.New: %v", err)
			}
			test(t, name, given, err)
		})
	}
}

// TestStartupChangesEverySettingOfAProgram shows that in a program, a field that a startup handler changes counts as if
// it had been given to kopf.New, or is an error.
func TestStartupChangesEverySettingOfAProgram(t *testing.T) {
	eachSetting(t, func(t *testing.T, name string, given *kopf.Operator, wrong error) {
		op := newChangingOperator(t, name, nil)
		err := kopf.StartUp(t.Context(), op)
		if err == nil {
			_, err = kopf.Plan(op, newScheme(t))
		}
		switch {
		case name == "LogHandler":
			if err == nil || !strings.Contains(err.Error(), "changed LogHandler, which is in use already") {
				t.Errorf("a change of the log handler must be an error: %v", err)
			}
		case wrong != nil:
			if err == nil || !strings.Contains(err.Error(), "kopf.New, changed by OnStartup: "+name) {
				t.Errorf("a setting that kopf.New refuses must be an error: %v", err)
			}
		case err != nil:
			t.Error(err)
		default:
			wantSame(t, name, given, op)
		}
	})
}

// TestStartupChangesEverySettingInAManager shows the same for a given manager, except for the settings that belong to
// its program.
func TestStartupChangesEverySettingInAManager(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	refused := map[string]string{
		"LogHandler": "changed LogHandler", "AddToScheme": "AddToScheme: OnStartup comes too late",
	}
	refused["Sharding.Shards"] = "Sharding: OnStartup comes too late"
	refused["Tracing.Provider"], refused["Tracing.Apart"] = "Tracing: OnStartup", "Tracing: OnStartup comes too late"
	for name := range fieldsOf(reflect.ValueOf(kopf.AdmissionSettings{}), "Admission.") {
		refused[name] = "Admission: OnStartup comes too late"
	}
	for _, name := range []string{
		"UltimateExitingTimeout", "CachedReads", "Networking.ConnectTimeout", "Networking.TrustEnv",
		"Watching.ConnectTimeout",
	} {
		refused[name] = "changed by OnStartup: " + name + ": it is for kopf.Main"
	}
	eachSetting(t, func(t *testing.T, name string, given *kopf.Operator, wrong error) {
		synctest.Test(t, func(t *testing.T) {
			var kept *kopf.Settings
			op := newChangingOperator(t, name, &kept)
			stop := startInManager(t, servedAPI(), op)
			synctest.Wait()
			if kept == nil {
				t.Fatal("the startup handler must be called")
			}
			// Later changes of the settings do not count.
			late := fieldsOf(reflect.ValueOf(kept).Elem(), "")[name]
			if late.Kind() == reflect.Slice {
				late.Index(0).SetZero()
			}
			late.SetZero()
			text := refused[name]
			if wrong != nil {
				text = "changed by OnStartup: " + name
			}
			if text == "" {
				wantSame(t, name, given, op)
			}
			err := stop()
			if (err != nil) != (text != "") || err != nil && !strings.Contains(err.Error(), text) {
				t.Errorf("want an error with %q, got: %v", text, err)
			}
		})
	})
}
