package changes_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

func (w *harness) startRedacted(paths []diff.Path, registered ...*handlers.Handler) *process {
	p := w.start(registered...)
	p.handling.Lens.Redaction = cause.Redaction{Paths: paths}
	return p
}

// wantNoSecrets checks that annotations and log lines do not contain the secret.
func (w *harness) wantNoSecrets(when string) {
	w.t.Helper()
	annotations, err := json.Marshal(w.at("metadata", "annotations"))
	if err != nil {
		w.t.Fatal(err)
	}
	if strings.Contains(string(annotations), "secret") {
		w.t.Errorf("%s: a secret is stored: %s", when, annotations)
	}
	if w.hasLogged("secret") {
		w.t.Errorf("%s: a secret is logged: %v", when, w.logLines)
	}
}

// TestRedactedMemory shows how objects with a secret are handled.
func TestRedactedMemory(t *testing.T) {
	later := temporaryError{delay: 10 * time.Second}
	secret, everything := []diff.Path{{"spec", "field"}}, []diff.Path{nil}
	stories := map[string]scenario{}
	for name, paths := range map[string][]diff.Path{"Field": secret, "Everything": everything} {
		stories[name+"Lives"] = scenario{"changes of a secret are noticed, and it is never stored", func(w *harness) {
			w.set("secret-one", "spec", "field")
			var seen diff.Diff
			var old any
			var shown string
			p := w.startRedacted(paths, onCreate("a", ok), onUpdate("u",
				func(_ context.Context, c *handlers.Invocation) error {
					seen, old = c.Cause.Diff, at(cause.WithoutHidden(c.Cause.Old), "spec", "field")
					shown, _ = at(working(c), "spec", "field").(string)
					return nil
				}))
			p.settle()
			w.wantNoSecrets("created")
			w.set("secret-two", "spec", "field")
			p.settle()
			w.wantNoSecrets("updated")
			w.startRedacted(paths, onCreate("a", ok), onUpdate("u", ok)).settle()
			w.wantCalls("all", "0s create a", "0s update u")
			w.want("diff", diff.Diff{{Op: diff.Change, Path: diff.Path{"spec", "field"}}}, seen)
			w.want("old", nil, old)
			w.want("object", "secret-two", shown)
			w.wantClean("all")
		}}
		stories[name+"Interim"] = scenario{"interim memory contains no secret, and an edit is handled as an update",
			func(w *harness) {
				w.set("secret-one", "spec", "field")
				registered := []*handlers.Handler{onCreate("a", ok), onCreate("b", fails(1, later)), onUpdate("u", ok)}
				_, _ = w.startRedacted(paths, registered...).pass()
				w.want("has interim memory", true, w.annotation(interimAnnotation) != nil)
				w.wantNoSecrets("unfinished")
				w.startRedacted(paths, registered...).settle()
				w.wantCalls("unchanged", "0s create a", "0s create b", "10s create b")
				w.set("secret-two", "spec", "field")
				p := w.startRedacted(paths, onUpdate("u", ok), onUpdate("v", fails(1, later)))
				_, _ = p.pass()
				w.set("secret-one", "spec", "field")
				p.settle()
				w.wantCalls("reverted after a success", "10s update u", "10s update v", "10s update u", "10s update v")
				w.wantNoSecrets("reverted")
				w.wantClean("all")
			}}
		stories[name+"ThereAndBack"] = scenario{"switching the redaction is not a change, not even for an open cause",
			func(w *harness) {
				w.set("secret-one", "spec", "field")
				registered := []*handlers.Handler{onCreate("a", ok), onCreate("b", fails(1, later)), onUpdate("u", ok)}
				_, _ = w.start(registered...).pass()
				w.startRedacted(paths, registered...).settle()
				w.start(registered...).settle()
				w.startRedacted(paths, registered...).settle()
				w.wantCalls("all", "0s create a", "0s create b", "10s create b")
				w.set("secret-two", "spec", "field")
				w.startRedacted(paths, registered...).settle()
				w.wantNoSecrets("updated")
				w.set("three", "spec", "field")
				w.start(registered...).settle()
				w.wantCalls("updates", "10s update u", "10s update u")
				w.wantHandled("finally", "three")
			}}
		stories[name+"Filters"] = scenario{"a handler of a redacted field gets its changes", func(w *harness) {
			w.set("secret-one", "spec", "field")
			var seen []diff.Diff
			note := func(_ context.Context, c *handlers.Invocation) error {
				_, _, changes := c.Handler.ViewCause(c.Cause)
				seen = append(seen, changes)
				return nil
			}
			field := func(h *handlers.Handler) { h.Field, h.NeedsChange = diff.Path{"spec", "field"}, true }
			p := w.startRedacted(paths, on("", "f", note, field))
			p.settle()
			w.set("secret-two", "spec", "field")
			p.settle()
			w.set("secret", "metadata", "labels", "other")
			p.settle()
			w.wantCalls("all", "0s create f", "0s update f")
			w.want("diffs", []diff.Diff{{{Op: diff.Add}}, {{Op: diff.Change}}}, seen)
		}}
	}
	run(t, stories)
}
