package console_test

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/inspection"
	"github.com/kopf-runtime/kopf-runtime/peering"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/test/browser"
	"github.com/kopf-runtime/kopf-runtime/test/kits/journaltest"
)

func TestMain(m *testing.M) { browser.Main(m) }

var (
	databases = journaltest.NamespacedResource("example.org", "Database", "databases")
	backups   = journaltest.NamespacedResource("example.org", "Backup", "backups")

	provision = journaltest.WithRequirement(journaltest.NewHandler("provision", "create"), `WithLabel("tier", "prod")`)
	resize    = journaltest.NewHandler("resize", "update")
	remove    = journaltest.NewHandler("remove", "delete")
	tail      = journaltest.NewHandler("tail", "daemon")
	restore   = journaltest.NewHandler("restore", "create")
)

// harness is an operator that was made by hand, with its page.
type harness struct {
	journal  *journal.Journal
	operator *journaltest.FakeOperator
	page     http.Handler
	url      string
	server   *httptest.Server
}

type verdict = journaltest.EvaluationVerdict

func (w *harness) newStory(name string) journaltest.Story {
	return journaltest.StartStory(w.journal, databases, "shop", name)
}

func (w *harness) standing() journal.OperatorState {
	one, two := journaltest.ServedKind(w.journal, databases, provision, resize, remove, tail),
		journaltest.ServedKind(w.journal, backups, restore)
	one.Background, two.Namespaces = map[string]int{"running": 2, "waiting": 1}, []string{"shop", "shop-eu"}
	return journal.OperatorState{
		Operator: "databases.example.org", Running: true, Kinds: []journal.ServedKind{one, two},
		AbsentHandlers: []journal.AbsentHandler{{Handler: "audit", Selector: "policies.example.org"}},
	}
}

// virtualStart is when everything in a world begins: that of virtual time.
var virtualStart = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// newPopulatedHarness has objects in all states. It happened in virtual time, so that all times are the same in each
// picture.
func newPopulatedHarness(t *testing.T) *harness {
	t.Helper()
	w := newEmptyHarness(t)
	refused, minute := errors.New("the quota of project shop is used up"), time.Minute
	synctest.Test(t, func(t *testing.T) {
		tick := func() { time.Sleep(7 * time.Second) }
		w.newStory("seen").RecordEvent("ADDED")
		tick()
		w.newStory("quiet").RecordEvent("ADDED").RecordEvaluation("noop")
		tick()
		w.newStory("archive").RecordEvent("").RecordEvaluation("noop") // it was there before
		tick()
		w.newStory("orders").RecordEvaluation("create", verdict{Handler: provision}).
			RecordCall(provision, 1, execution.Outcome{Final: true}).RecordEvent("MODIFIED").RecordEvaluation("noop")
		tick()
		w.newStory("billing").RecordEvaluation("update",
			verdict{Handler: provision, Reason: execution.OtherReason}, verdict{Handler: resize})
		tick()
		w.newStory("search").RecordEvaluation("create", verdict{Handler: provision}).
			RecordCall(provision, 1, execution.Outcome{Delay: &minute})
		tick()
		w.newStory("old").RecordEvaluation("delete", verdict{Handler: remove}).
			RecordCall(remove, 1, execution.Outcome{Final: true}).RecordEvent("DELETED")
		tick()
		w.newStory("carts").RecordEvent("ADDED").RecordEvaluation("create", verdict{Handler: provision}).
			RecordCall(provision, 1, execution.Outcome{Err: refused, Delay: &minute})
		tick()
		w.newStory("users").RecordEvaluation("update", verdict{Handler: resize}).
			RecordCall(resize, 3, execution.Outcome{Final: true, Err: errors.New("a disk cannot be made smaller")})
		tick()
		w.newStory("broken").RecordEvent("").RecordHold(journal.HeldBlocked, errors.New("spec.size is not a number"),
			time.Time{})
		tick()
		journaltest.StartStory(w.journal, backups, "shop-eu", "nightly").
			RecordHold(journal.HeldError, errors.New("the server has timed out"), time.Now().Add(minute))
	})
	return w
}

// newEmptyHarness is a world without objects.
func newEmptyHarness(t *testing.T) *harness {
	t.Helper()
	w := &harness{journal: journal.New(journal.RetentionLimits{}), operator: &journaltest.FakeOperator{}}
	w.journal.SetLive(w.operator)
	w.operator.SetState(w.standing())
	busy := 1
	w.page = inspection.NewConsole(w.journal, func() []peering.Peer {
		return []peering.Peer{
			{Identity: "me@laptop", IsOwn: true, Priority: 0, LastSeen: virtualStart,
				Until:   virtualStart.Add(time.Minute),
				Runtime: "kopf-runtime", Busy: &busy},
			{Identity: "other@kopf", Priority: -10, LastSeen: virtualStart.Add(time.Second),
				Until: virtualStart.Add(time.Hour)},
		}
	})
	w.serve(t, "127.0.0.1:0")
	t.Cleanup(func() { end(w.server) }) // after all pages, which would report it
	return w
}

// serve starts serving at the address, and can be called again after the end.
func (w *harness) serve(t *testing.T, address string) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(w.page)
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	w.server, w.url = server, server.URL+inspection.ConsolePath
}

// end ends the server as the exit of an operator does: with all streams.
func end(server *httptest.Server) {
	server.CloseClientConnections()
	server.Close()
}
