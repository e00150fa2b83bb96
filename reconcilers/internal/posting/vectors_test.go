package posting_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/posting"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// startTimestamp is the time at which the clocks of the cases start.
const startTimestamp = "2024-05-06T07:08:09.123456+00:00"

// optionsOf returns the options of Kopf, with the settings of a case.
func optionsOf(t *testing.T, input vectors.Fields) posting.Options {
	if input["settings"] == nil {
		return posting.Options{Component: "kopf", Plain: true}
	}
	settings := vectors.Known(t, input["settings"],
		"posting.event_name_prefix", "posting.reporting_component", "posting.reporting_instance")
	return posting.Options{
		Component: settings.Text("posting.reporting_component", "kopf"), Plain: true,
		Instance:   settings.Text("posting.reporting_instance", ""),
		NamePrefix: settings.Text("posting.event_name_prefix", ""),
	}
}

// TestVectorsEvents compares the posted events with Kopf's.
func TestVectorsEvents(t *testing.T) {
	vectors.Run(t, "k8s_event", func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		vectors.Known(t, input, "body", "default_namespace", "message", "now", "reason", "ref", "settings", "status",
			"type")
		vectors.Bubble(t, func(t *testing.T) {
			at, err := time.Parse(time.RFC3339Nano, input.Text("now", startTimestamp))
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Until(at))
			s := &server{}
			if status := vectors.Number(t, input, "status"); status != nil && *status >= 400 {
				s.create = func(context.Context) error { return fmt.Errorf("status %v", *status) }
			}
			o := optionsOf(t, input)
			o.DefaultNamespace = func() string { return input.Text("default_namespace", "") }
			poster := posting.New(s, o)
			poster.Post(t.Context(), bodyOf(input), input.Text("type", ""), input.Text("reason", ""),
				input.Text("message", ""))
			stop := startPoster(t.Context(), t, poster)
			synctest.Wait()
			stop()
			got := map[string]any{"posted": s.posted}
			if d := cmp.Diff(storedEvents(t, want.Value), storedEvents(t, got), cmpopts.EquateEmpty()); d != "" {
				t.Errorf("-want, +got:\n%s", d)
			}
		})
	})
}

// bodyOf returns the object of a case. A reference has the same fields in other places.
func bodyOf(input vectors.Fields) map[string]any {
	ref := input.Mapping("ref")
	if ref == nil {
		return input.Object("body")
	}
	metadata, body := map[string]any{}, map[string]any{"metadata": nil}
	body["metadata"] = metadata
	for key, value := range ref {
		if key == "apiVersion" || key == "kind" {
			body[key] = value
		} else {
			metadata[key] = value
		}
	}
	return body
}

var wholeSecond = regexp.MustCompile(`"eventTime":"([^".]*)(Z|\+00:00)"`)

// storedEvents returns the posted events as an API server stores them: some of its times are whole seconds.
func storedEvents(t *testing.T, posted any) (all struct{ Posted []request }) {
	t.Helper()
	for range 2 {
		text, err := json.Marshal(posted)
		if err != nil {
			t.Fatal(err)
		}
		// API servers refuse an event posted by Kopf at a whole second, as its eventTime does not have a fraction.
		text = wholeSecond.ReplaceAll(text, []byte(`"eventTime":"$1.000000$2"`))
		if err := json.Unmarshal(text, &all); err != nil {
			t.Fatal(err)
		}
		posted = map[string]any{"posted": all.Posted}
	}
	return all
}
