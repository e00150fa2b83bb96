package kopf_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// explanationCase is an operator whose explanation of one object is tested.
type explanationCase struct {
	t              *testing.T
	server         *memapi.Server
	connection     *memapi.Connection
	op             *kopf.Operator
	widgets        kopf.Selection[*Widget]
	explainHandler http.Handler
}

func newExplanationCase(t *testing.T, settings kopf.Settings) *explanationCase {
	t.Helper()
	p := &explanationCase{t: t, server: memapi.New()}
	p.connection = p.server.Connect()
	p.server.Install(widgetResource)
	p.server.Install(peerings)
	p.server.Put(peerings, map[string]any{"metadata": map[string]any{"name": "shared"}})
	settings.Peering.Standalone = settings.Peering.Name == ""
	settings.AddToScheme = runtime.SchemeBuilder{addWidgets}
	p.op = kopf.New("puzzles.example.org", settings)
	p.widgets = kopf.For(p.op, &Widget{})
	p.explainHandler = p.op.ExplainHandler()
	return p
}

// put creates the object with labels.
func (p *explanationCase) put(spec map[string]any, labels ...string) {
	object := body(spec)
	all := map[string]any{}
	for i := 0; i+1 < len(labels); i += 2 {
		all[labels[i]] = labels[i+1]
	}
	metadata, _ := object["metadata"].(map[string]any)
	metadata["labels"] = all
	p.server.Put(widgetResource, object)
}

func (p *explanationCase) edit(change func(object map[string]any)) {
	p.server.Edit(widgetResource, "ns", "w1", change)
}

func (p *explanationCase) resize(size int64) {
	p.edit(func(object map[string]any) { object["spec"] = map[string]any{"size": size} })
}

// run starts the operator and waits half an hour.
func (p *explanationCase) run() {
	p.t.Helper()
	r := facadetest.Start(p.t, p.op, facadetest.Against(memapi.Config(p.connection)))
	p.t.Cleanup(func() { _ = r.Stop() })
	time.Sleep(30 * time.Minute)
	synctest.Wait()
}

// wait waits some minutes.
func (p *explanationCase) wait(minutes int) {
	time.Sleep(time.Duration(minutes) * time.Minute)
	synctest.Wait()
}

// get requests an explanation and returns the status and the text of the response.
func (p *explanationCase) get(query ...string) (int, string) {
	p.t.Helper()
	values := url.Values{}
	for i := 0; i+1 < len(query); i += 2 {
		values.Set(query[i], query[i+1])
	}
	return answerTo(p.explainHandler, "/explain?"+values.Encode())
}

func answerTo(handler http.Handler, target string) (int, string) {
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, target, nil))
	return recorder.Code, recorder.Body.String()
}

// answers returns the explanation for people, without the history, whose order depends on goroutines, and with
// times that do not depend on the duration of a start.
func (p *explanationCase) answers() string {
	p.t.Helper()
	status, text := p.get("kind", "widget", "namespace", "ns", "name", "w1", "output", "text")
	if status != http.StatusOK {
		p.t.Errorf("want an explanation, got status %d: %s", status, text)
	}
	text, _, _ = strings.Cut(text, "\nHISTORY")
	return regexp.MustCompile(`2000-01-01 (\d\d:\d\d):\d\d\.\d{3}`).ReplaceAllString(text, "$1")
}

// explanationCases are situations and the names under which the golden file has their explanations.
var explanationCases = []struct {
	question string
	settings kopf.Settings
	stage    func(p *explanationCase)
}{
	{"its label does not match, nor does a function", kopf.Settings{}, func(p *explanationCase) {
		p.widgets.WithLabel("tier", "prod").OnCreate("provision", succeed)
		p.widgets.MatchingLabels("tier in (prod,stage),!paused").OnUpdate("resize", succeed)
		p.widgets.When(func(context.Context, *Widget) bool { return false }).OnDelete("release", succeed)
		p.put(map[string]any{"size": int64(1)}, "tier", "test")
		p.run()
	}},
	{"a field does not have the required value, or has not changed", kopf.Settings{}, func(p *explanationCase) {
		p.widgets.OnCreate("grown", succeed, kopf.InField("spec.size"), kopf.Value(7))
		p.widgets.OnField("owned", "spec.owner", succeed)
		p.widgets.OnUpdate("seven", succeed, kopf.InField("spec.size"), kopf.Value(7))
		p.widgets.OnUpdate("shrunk", succeed, kopf.InField("spec.size"), kopf.OldValue(9))
		p.put(map[string]any{"size": int64(1), "owner": "ann"})
		p.run()
		p.edit(func(object map[string]any) { object["spec"] = map[string]any{"size": int64(2), "owner": "ann"} })
		p.wait(10)
	}},
	{"it is for other changes", kopf.Settings{}, func(p *explanationCase) {
		p.widgets.OnCreate("made", succeed)
		p.widgets.OnUpdate("changed", succeed)
		p.widgets.OnDelete("gone", succeed, kopf.Optional())
		p.widgets.OnResume("back", succeed)
		p.run()
		p.put(map[string]any{"size": int64(1)})
		p.wait(10)
	}},
	{"nothing essential has changed", kopf.Settings{}, func(p *explanationCase) {
		p.widgets.OnCreate("made", succeed)
		p.widgets.OnUpdate("changed", succeed)
		p.put(map[string]any{"size": int64(1)})
		p.run()
		p.edit(func(object map[string]any) { object["status"] = map[string]any{"phase": "Fine"} })
		p.wait(10)
	}},
	{"the operator is paused", kopf.Settings{Peering: kopf.PeeringSettings{Name: "shared", Identity: "me"}},
		func(p *explanationCase) {
			p.widgets.OnUpdate("changed", succeed)
			p.put(map[string]any{"size": int64(1)})
			p.run()
			(&sharedPeering{server: p.server}).addPeer(3600)
			p.wait(1)
			p.resize(2)
			p.wait(10)
		}},
	{"it waits for its next attempt, and others go on", kopf.Settings{}, func(p *explanationCase) {
		p.widgets.OnCreate("flaky", func(context.Context, *Change) error {
			return kopf.Temporary(errors.New("no quota"), time.Hour)
		})
		p.widgets.OnCreate("steady", succeed)
		p.put(map[string]any{"size": int64(1)})
		p.run()
		p.edit(func(object map[string]any) { object["status"] = map[string]any{"phase": "Fine"} })
		p.wait(1)
	}},
	{"it failed permanently", kopf.Settings{}, func(p *explanationCase) {
		p.widgets.OnCreate(
			"strict",
			func(context.Context, *Change) error { return kopf.Permanent(fmt.Errorf("no such region")) },
		)
		p.widgets.OnUpdate("changed", succeed)
		p.put(map[string]any{"size": int64(1)})
		p.run()
	}},
	{"its change was superseded", kopf.Settings{}, func(p *explanationCase) {
		p.widgets.OnCreate("slow", func(context.Context, *Change) error {
			return kopf.Temporary(errors.New("not yet"), 2*time.Hour)
		})
		p.widgets.OnDelete("release", func(context.Context, *Change) error {
			return kopf.Temporary(errors.New("still in use"), 2*time.Hour)
		})
		p.put(map[string]any{"size": int64(1)})
		p.run()
		p.server.Delete(widgetResource, "ns", "w1")
		p.wait(10)
	}},
	{"all wait for an index", kopf.Settings{}, func(p *explanationCase) {
		p.widgets.OnCreate("made", succeed)
		kopf.NewIndex(kopf.For(p.op, &corev1.ConfigMap{}), "names",
			func(context.Context, *corev1.ConfigMap) (map[string]string, error) { return nil, nil })
		p.connection.Before = func(_ context.Context, r memapi.Request) error {
			if r.Resource.Plural == "configmaps" {
				return memapi.NewRefusal(http.StatusInternalServerError)
			}
			return nil
		}
		p.put(map[string]any{"size": int64(1)})
		p.run()
	}},
	{"the object is throttled, as it cannot be written", kopf.Settings{}, func(p *explanationCase) {
		p.connection.Before = func(_ context.Context, r memapi.Request) error {
			if r.Verb == "patch" {
				return memapi.NewRefusal(http.StatusForbidden)
			}
			return nil
		}
		p.widgets.OnCreate("made", succeed)
		p.put(map[string]any{"size": int64(1)})
		p.run()
	}},
	{"the object does not fit into its Go type", kopf.Settings{}, func(p *explanationCase) {
		p.widgets.OnCreate("made", succeed)
		p.put(map[string]any{"size": "large"})
		p.run()
	}},
	{"its namespace is not served", kopf.Settings{Namespaces: []string{"other"}}, func(p *explanationCase) {
		p.widgets.OnCreate("made", succeed)
		p.put(map[string]any{"size": int64(1)})
		p.run()
	}},
	{"its labels are not those that everybody demands", kopf.Settings{}, func(p *explanationCase) {
		hear := func(context.Context, *kopf.WatchEvent[*Widget]) error { return nil }
		p.widgets.WithLabel("tier", "prod").OnEvent("hears", hear)
		p.put(map[string]any{"size": int64(1)})
		p.run()
	}},
	{"events, daemons and timers have filters, too", kopf.Settings{}, func(p *explanationCase) {
		hear := func(context.Context, *kopf.WatchEvent[*Widget]) error { return nil }
		p.widgets.WithLabel("tier", "prod").OnEvent("hears", hear)
		run := func(context.Context, *kopf.Task[*Widget]) error { return nil }
		p.widgets.WithAnnotation("watch", kopf.Present).Daemon("watches", run)
		p.widgets.Timer("ticks", time.Hour, run)
		p.put(map[string]any{"size": int64(1)})
		p.run()
	}},
}

// TestExplainAnswers shows the explanations of why a handler ran or did not run.
func TestExplainAnswers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	var all []string
	for _, puzzle := range explanationCases {
		synctest.Test(t, func(t *testing.T) {
			p := newExplanationCase(t, puzzle.settings)
			puzzle.stage(p)
			all = append(all, "=== "+puzzle.question+"\n"+p.answers())
		})
	}
	facadetest.Golden(t, "testdata/explain.golden", strings.Join(all, "\n"))
}

// TestJournalByTheStartup shows that a startup handler can set the size of the journal.
func TestJournalByTheStartup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newExplanationCase(t, kopf.Settings{})
		p.op.OnStartup("small", func(_ context.Context, s *kopf.Activity) error {
			s.Settings.JournalObjects = 1
			return nil
		})
		p.widgets.OnCreate("made", succeed)
		p.put(map[string]any{"size": int64(1)})
		other := body(map[string]any{"size": int64(1)})
		_ = unstructured.SetNestedField(other, "w2", "metadata", "name")
		_ = unstructured.SetNestedField(other, "uid-2", "metadata", "uid")
		p.run()
		_, text := p.get("kind", "widget", "namespace", "ns", "name", "w1")
		if !strings.Contains(text, `"event"`) {
			t.Errorf("the journal has the only object: got %s", text)
		}
		p.server.Put(widgetResource, other)
		p.wait(1)
		_, text = p.get("kind", "widget", "namespace", "ns", "name", "w1", "output", "text")
		if !strings.Contains(text, "at least 1 other objects changed since") {
			t.Errorf("the journal has one object at most: got %s", text)
		}
	})
}
