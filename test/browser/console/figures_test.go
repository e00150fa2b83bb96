package console_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/test/browser"
	"github.com/kopf-runtime/kopf-runtime/test/kits/journaltest"
)

const manyObjects, manyKinds, handlersOfKind = 10_000, 10, 10

// newCrowdedHarness is a world of ten thousand objects and a hundred handlers. All were created and updated; every
// twentieth waits for a retry, and every hundredth failed permanently.
func newCrowdedHarness(t *testing.T) *harness {
	t.Helper()
	w := newEmptyHarness(t)
	standing := journal.OperatorState{Operator: "crowded.example.org", Running: true}
	minute, refused := time.Minute, errors.New("the quota of the project is used up; ask its owner for more of it")
	for k := range manyKinds {
		kind := journaltest.NamespacedResource("example.org", fmt.Sprintf("Kind%d", k), fmt.Sprintf("kind%ds", k))
		var own []*handlers.Handler
		var created, updated []verdict
		for h := range handlersOfKind {
			on, other := "create", execution.OtherReason
			if h%2 == 1 {
				on, other = "update", ""
			}
			handler := journaltest.NewHandler(fmt.Sprintf("handler-%d", h), on)
			own = append(own, journaltest.WithRequirement(handler, `WithLabel("tier", "prod")`))
			updated = append(updated, verdict{Handler: handler, Reason: other})
			if on == "create" {
				created = append(created, verdict{Handler: handler})
			} else {
				created = append(created, verdict{Handler: handler, Reason: execution.OtherReason})
			}
		}
		standing.Kinds = append(standing.Kinds, journaltest.ServedKind(w.journal, kind, own...))
		for n := range manyObjects / manyKinds {
			s := journaltest.StartStory(w.journal, kind, fmt.Sprintf("namespace-%d", n%50),
				fmt.Sprintf("object-%05d", n))
			s.RecordEvent("ADDED").RecordEvaluation("create", created...)
			for h := 0; h < handlersOfKind; h += 2 {
				s.RecordCall(own[h], 1, execution.Outcome{Final: true})
			}
			s.RecordEvent("MODIFIED").RecordEvaluation("noop").RecordEvent("MODIFIED").RecordEvaluation("update",
				updated...)
			outcome := execution.Outcome{Final: true}
			switch {
			case n%100 == 0:
				outcome.Err = refused
			case n%20 == 0:
				outcome = execution.Outcome{Err: refused, Delay: &minute}
			}
			s.RecordCall(own[1], 1, outcome)
			for h := 3; h < handlersOfKind; h += 2 {
				s.RecordCall(own[h], 1, execution.Outcome{Final: true})
			}
		}
	}
	w.operator.SetState(standing)
	return w
}

// heapInUse is the heap that is in use by now.
func heapInUse() float64 {
	runtime.GC()
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return float64(memory.HeapAlloc) / (1 << 20)
}

// get gives what a path answers, until it has had so many events, if it is a stream.
func get(t *testing.T, url string, events int) (body io.Closer, size int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if events == 0 {
		all, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.Body, len(all)
	}
	lines := bufio.NewReader(response.Body)
	for events > 0 {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if size += len(line); strings.TrimSpace(line) == "" {
			events--
		}
	}
	return response.Body, size
}

// What the page costs with ten thousand objects and a hundred handlers: run it with -v. However many there are, a page
// gets a hundred of each.
func TestFigures(t *testing.T) {
	before := heapInUse()
	w := newCrowdedHarness(t)
	closed := heapInUse()
	page := 0
	for _, part := range []string{"", "/style.css", "/script.js"} {
		_, size := get(t, w.url+part, 0)
		page += size
	}
	began := time.Now()
	stream, first := get(t, w.url+"/events", 2)
	took := time.Since(began)
	opened := heapInUse()
	_ = stream.Close()

	p := open(t, w, browser.View{})
	p.Wait(rowCountScript + " === 100 && performance.getEntriesByName('objects').length === 1")
	var paint, objects float64
	p.Read("performance.getEntriesByName('first-contentful-paint')[0].startTime", &paint)
	p.Read("performance.getEntriesByName('objects')[0].startTime", &objects)
	var shown map[string]int
	p.Read("Object.fromEntries([...document.querySelectorAll('table[id]')]"+
		".map((table) => [table.id, table.tBodies[0].rows.length]))", &shown)
	for table, count := range shown {
		if count > 100 {
			t.Errorf("the table %s has %d rows", table, count)
		}
	}
	if got := text(p, "#shown"); !strings.Contains(got, "10,000 objects are known. The first 100 are shown") {
		t.Errorf("the page says %q", got)
	}
	p.CheckAccessibility()
	t.Logf("%d objects, %d handlers; rows by table: %v", manyObjects, manyKinds*handlersOfKind, shown)
	t.Logf("the page with its style and script: %.1f KiB; the first events: %.1f KiB, after %s",
		float64(page)/1024, float64(first)/1024, took.Round(time.Millisecond))
	t.Logf("first paint after %.0f ms, objects painted after %.0f ms, from the beginning of the navigation",
		paint, objects)
	t.Logf("heap in use: %.1f MiB without the journal, %.1f MiB with it, %.1f MiB with a page open",
		before, closed, opened)
}
