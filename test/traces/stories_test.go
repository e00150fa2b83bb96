package traces_test

import (
	"os"
	"testing"
	"time"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/test/traces"
)

type (
	Change  = kopf.Change[*kopf.Unstructured]
	Task    = kopf.Task[*kopf.Unstructured]
	Widgets = kopf.Selection[*kopf.Unstructured]
)

func TestMain(m *testing.M) { os.Exit(facadetest.Main(m, "testdata/*.golden")) }

// TestStories compares all that an operator sends in each story with its golden file.
func TestStories(t *testing.T) {
	for _, story := range []struct {
		name, description string
		play              func(s *traces.Story)
	}{
		{"01-creation", "A handler without a result costs one write.", creation},
		{"02-result", "A result and changes: first the status, then the rest.", result},
		{"03-finalizer", "The finalizer is written before the handler of the creation is called.", finalizer},
		{"04-finalizer-by-webhook", "With FinalizerOnCreate, a creation costs one write.", finalizerByWebhook},
		{"05-update", "An edit costs one write.", update},
		{"06-edits-during-handler", "An edit during a handler is an update of its own afterwards.", editsDuringHandler},
		{"07-reverted-edit", "An edit that is reverted before the retry leaves no record.", revertedEdit},
		{"08-left-filters", "The record of an object that leaves the filters is removed.", leftFilters},
		{"09-temporary-errors", "Retries cost one write each, and none to wake up.", temporaryErrors},
		{"10-permanent-error", "A permanent error closes the change.", permanentError},
		{"11-timeout", "A handler is stopped at its timeout, and fails.", timeout},
		{"12-slow-handler", "An outcome is stored after a second while the next handler runs.", slowHandler},
		{"13-exit", "Outcomes are stored at once when the operator exits.", exit},
		{"14-flush", "Flush writes before the handler returns.", flush},
		{"15-refused-flush", "A flush that the API server refuses is an error of the handler alone.", refusedFlush},
		{"16-refused-status", "A refused status is tried again alone, and the rest is written.", refusedStatus},
		{"17-conflicts", "After a conflict, the object is read and the changes are made again.", conflicts},
		{"18-lost-answer", "After a lost answer, the object is read before the write is repeated.", lostAnswer},
		{"19-sub-handlers", "Sub-handlers have one write per pass.", subHandlers},
		{"20-dependent-sub-handlers", "Dependent sub-handlers run in one pass.", dependentSubHandlers},
		{"21-deletion", "The last write releases the object with its records.", deletion},
		{"22-held-deletion", "A deletion that failed permanently is tried again after an edit.", heldDeletion},
		{"23-timer", "Each tick of a timer writes its changes.", timer},
		{"24-daemon", "A daemon ends before the finalizer is removed.", daemon},
		{"25-event-handler", "The echo of a change by a handler of raw events changes nothing.", eventHandler},
		{"26-children", "Children are applied, pruned, and deleted by owner references.", children},
		{"27-admission", "Webhook configurations are written at the start and the exit.", admission},
		{"28-takeover", "An object of a Kopf operator is taken over in the middle of its retries.", takeover},
		{"29-pause", "In a pause, results are written; afterwards, work goes on from consistent lists.", pause},
		{"30-restart", "After a restart, a resume handler costs no write; nor do an index and conditions.", restart},
		{"31-pause-without-writes", "Unsaved results are written before any handler is called.", pauseWithoutWrites},
		{"32-namespaces", "A pattern of namespaces costs a watch of these, and one of the kind in each.", patterns},
		{"33-events", "A Kubernetes event that repeats is counted in the first one.", postedEvents},
		{"34-control", "A request costs one write; a pause costs none.", control},
	} {
		t.Run(story.name, func(t *testing.T) { traces.Run(t, story.name, story.description, story.play) })
	}
}

var widgets = memapi.Resource{
	Group: "example.org", Version: "v1", Kind: "Widget", Plural: "widgets", Namespaced: true, StatusSubresource: true,
}

const (
	collection = "/apis/example.org/v1/namespaces/default/widgets"
	objectPath = collection + "/one"
)

// start starts an operator for widgets.
func start(s *traces.Story, settings kopf.Settings, register func(all Widgets)) {
	s.T.Helper()
	s.Server.Install(widgets)
	op := kopf.New("widgets.example.org", settings)
	register(kopf.ForResource(op, "example.org/v1", "widgets"))
	s.Start(op)
}

func create(s *traces.Story, takes time.Duration) {
	s.Step("A user creates widget one.", takes, func() {
		s.Send("POST", collection, `{"metadata":{"name":"one","labels":{"team":"a"}},"spec":{"size":1}}`)
	})
}

func edit(s *traces.Story, title string, takes time.Duration, patch string) {
	s.Step(title, takes, func() { s.Send("PATCH", objectPath, patch) })
}

func remove(s *traces.Story, takes time.Duration) {
	s.Step("A user deletes widget one.", takes, func() { s.Send("DELETE", objectPath, "") })
}
