package changes_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// longestLine is the limit in bytes for log lines that quote contents of an object.
const longestLine = 2048

func (w *harness) wantShortLines() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, line := range w.logLines {
		if len(line) > longestLine {
			w.t.Errorf("a log line has %d bytes: %.200s…", len(line), line)
		}
	}
}

// countingStorage counts the reads of records, and fails after 1,000 of them.
type countingStorage struct {
	progress.Annotations
	reads *int
}

func (c countingStorage) Fetch(body map[string]any, id string) (*progress.Record, error) {
	if *c.reads++; *c.reads > 1000 {
		return nil, errors.New("too many reads")
	}
	return c.Annotations.Fetch(body, id)
}

// TestForgedRecords shows that records with forged contents do no harm.
func TestForgedRecords(t *testing.T) {
	forge := func(w *harness, id string, record map[string]any) {
		text, err := json.Marshal(record)
		if err != nil {
			w.t.Fatal(err)
		}
		w.set(string(text), "metadata", "annotations", prefix+"/"+strings.ReplaceAll(id, "/", "."))
	}
	run(t, map[string]scenario{
		"Purpose": {"a long purpose is superseded and not logged in full", func(w *harness) {
			forge(w, "a", map[string]any{"purpose": strings.Repeat("p", 100_000)})
			w.start(onCreate("a", ok)).settle()
			w.wantCalls("all", "0s create a")
			w.wantClean("all")
			w.want("logged", true, w.hasLogged("Superseding", "pppp"))
			w.wantShortLines()
		}},
		"Timestamp": {"an error about a malformed timestamp does not quote it in full", func(w *harness) {
			forge(w, "a", map[string]any{"started": strings.Repeat("t", 100_000)})
			_, err := w.start(onCreate("a", ok)).pass()
			var blocked *changes.BlockedError
			if !errors.As(err, &blocked) || len(err.Error()) > longestLine || !strings.Contains(
				err.Error(), prefix+"/a",
			) {
				w.t.Errorf(
					"want a short BlockedError that names the annotation, got %d bytes: %.200s", len(err.Error()), err,
				)
			}
		}},
		"Count": {"a forged number of attempts does not overflow to a negative one", func(w *harness) {
			forge(w, "a", map[string]any{"retries": int64(1<<63 - 1)})
			p := w.start(onCreate("a", fails(2, temporaryError{time.Second})))
			p.settle()
			w.wantCalls("all", "0s create a", "1s create a", "2s create a")
			w.want("errors", []error(nil), p.errs)
		}},
		"Subrefs": {"a record that is listed in a thousand spellings is read once", func(w *harness) {
			var spellings []any
			for n := range 4096 {
				id := []byte("a/bcdefghijklm")
				for bit := range 12 {
					id = append(id, []string{".", "/"}[n>>bit&1]...)
					id = append(id, 'x')
				}
				spellings = append(spellings, string(id))
			}
			forge(w, "a", map[string]any{"subrefs": append(spellings, spellings...), "delayed": "9999-01-01T00:00:00Z"})
			forge(w, spellings[0].(string), map[string]any{"message": strings.Repeat("m", 50_000)})
			p, reads := w.start(onCreate("a", ok)), 0
			store := countingStorage{progress.Annotations{Prefix: prefix}, &reads}
			p.handling.Progress, p.handling.Lens.Progress = store, store
			if _, err := p.pass(); err != nil || reads > 20 {
				w.t.Errorf("%d records were read, error %v", reads, err)
			}
		}},
		"Message": {"a long forged message does not outgrow the annotations when it is rewritten", func(w *harness) {
			forge(w, "a", map[string]any{"message": strings.Repeat("€", 60_000), "purpose": "update",
				"delayed": time.Now().Add(time.Second).UTC().Format(time.RFC3339)})
			p := w.start(onCreate("a", ok))
			p.settle()
			w.wantCalls("all", "1s create a")
			w.want("errors", []error(nil), p.errs)
			w.wantClean("all")
		}},
		"Delayed": {"a handler delayed for years is checked once a day and logged once", func(w *harness) {
			forge(w, "a", map[string]any{"delayed": "9999-01-01T00:00:00Z", "purpose": "create"})
			p := w.start(onCreate("a", ok), onCreate("b", ok))
			for range 3 {
				next, err := p.pass()
				if err != nil || next.RequeueAfter == nil || *next.RequeueAfter != 24*time.Hour {
					w.t.Errorf("want the next pass after a day, got %v, error %v", next.RequeueAfter, err)
				}
			}
			w.wantCalls("all", "0s create b")
			lines := slices.DeleteFunc(
				slices.Clone(w.logLines), func(line string) bool { return !strings.Contains(line, "more than a day") },
			)
			w.want("lines", 1, len(lines))
			w.set(nil, "metadata", "annotations", prefix+"/a")
			p.settle()
			w.wantCalls("repaired", "0s create a")
			w.want("memory", true, p.memory.IsEmpty())
		}},
	})
}

// TestForgedMemory shows that a deletion completes whatever the annotations of the engine contain.
func TestForgedMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	deep := strings.Repeat(`{"a":`, 9_000) + "1" + strings.Repeat("}", 9_000)
	texts := map[string]string{
		"Brackets": strings.Repeat("[", 100_000), "Braces": strings.Repeat(
			`{"a":`, 20_000,
		), "Deep": deep, "Nothing": "", "Null": "null",
		"Number": "1", "Huge": `{"spec":1e999}`,
		"Twice":     `{"spec":1,"spec":{"field":2},"metadata":7,"metadata":{"labels":[]}}`,
		"Surrogate": `{"spec":{"field":"\ud800"}}`, "Bytes": "{\"spec\":{\"field\":\"\xff\xfe\"}}",
		"Types":  `{"spec":"text","metadata":"text","status":[1]}`,
		"Digest": `{"$digest":"x"}`, "Digests": `{"$digests":[[]],"spec":{"field":"x"}}`,
		"DigestPaths": `{"$digests":[["spec","field","x"],[1]]}`, "Empty": "{}",
	}
	for _, name := range []string{
		handledAnnotation, interimAnnotation, boundToAnnotation, prefix + "/a", prefix + "/d", prefix + "/touch-dummy",
		prefix + "/kopf-managed",
	} {
		for kind, text := range texts {
			run(t, map[string]scenario{fmt.Sprint(
				strings.TrimPrefix(name, prefix+"/"), kind,
			): {"a forged annotation causes few calls and writes and does not block the deletion", func(w *harness) {
				registered := []*handlers.Handler{onCreate("a", ok), onUpdate("u", ok), onDelete("d", ok)}
				p := w.start(registered...)
				p.settle()
				w.set(text, "metadata", "annotations", name)
				p.settle()
				w.set("two", "spec", "field")
				p.settle()
				if calls, writes := w.calls(), w.drainWrites(); len(calls) > 4 || len(writes) > 8 {
					w.t.Errorf("want at most 4 calls and 8 writes, got calls %v, writes %v", calls, writes)
				}
				w.set(text, "metadata", "annotations", name)
				w.delete()
				p.settle()
				w.wantCalls("deletion", "0s delete d")
				w.want("stored", map[string]any(nil), w.stored())
				w.wantShortLines()
			}}})
		}
	}
}
