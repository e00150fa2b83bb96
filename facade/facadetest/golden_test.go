package facadetest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// TestGoldenOfAnOperator compares a whole operator of several families, with retries, sub-handlers and two objects side
// by side.
func TestGoldenOfAnOperator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		createConfigMap(t, server, "early")
		r := facadetest.Start(t, newMixedOperator(), facadetest.Against(memapi.Config(server)))
		r.Ready()
		createConfigMap(t, server, "home")
		createConfigMap(t, server, "other")
		r.Settle(time.Hour, 24*time.Hour)
		removeConfigMap(t, server, "home")
		r.Settle(time.Hour, 24*time.Hour)
		if err := r.Stop(); err != nil {
			t.Fatal(err)
		}
		var left corev1.ConfigMapList
		if err := newUserClient(t, server).List(t.Context(), &left); err != nil {
			t.Fatal(err)
		}
		facadetest.Golden(t, "testdata/household.golden", r.Calls(), r.Writes(), &left)
	})
}

// TestGoldenInRealTime shows that a golden file works in real time, where calls come at any time and side by side.
func TestGoldenInRealTime(t *testing.T) {
	server := memapi.New()
	createConfigMap(t, server, "world")
	createConfigMap(t, server, "earth")
	r := facadetest.Start(t, newGreetingOperator(nil), facadetest.Against(memapi.Config(server)))
	r.Await("Hello world", time.Minute)
	r.Await("Hello earth", time.Minute)
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	facadetest.Golden(t, "testdata/greeter.golden", r.Calls(), r.Writes())
}

func TestGoldenOfAHandler(t *testing.T) {
	letter := func(_ context.Context, c *DatabaseChange) error {
		c.Object.Spec.Size = 7
		c.Patch(func(db *Database) { db.Status.Host = "db-1" })
		c.Sub("storage", func(_ context.Context, c *DatabaseChange) error { return kopf.Permanent(errNever) })
		c.Sub("server", func(_ context.Context, c *DatabaseChange) error {
			return kopf.Temporary(errors.New("not yet\nnor soon"), time.Minute)
		})
		c.Info("Sent", "a letter")
		c.EventRecorderFor(pod()).Warn("Seen", "by the letter")
		c.SetResult("sent")
		return nil
	}
	c := facadetest.NewChange(orders())
	guard := func(_ context.Context, a *DatabaseAdmission) error {
		a.Patch(func(db *Database) { db.Spec.Size = 1 })
		a.Warning("it is small")
		return nil
	}
	admission := facadetest.NewAdmission(orders())
	deny := func(context.Context, *DatabaseAdmission) error { return kopf.Deny(403, "no %s", "more") }
	facadetest.Golden(t, "testdata/outcomes.golden",
		c.Call(t.Context(), letter),
		c.Call(t.Context(), func(context.Context, *DatabaseChange) error { return nil }),
		c.Call(t.Context(), letter),
		admission.Mutate(t.Context(), guard), admission.Validate(t.Context(), deny),
		"a text\n", map[string]any{"letters": []string{"one", "two"}},
	)
}

// TestGoldenOfUntypedObjects shows that an untyped object is not treated as a list, although it has the methods of
// lists.
func TestGoldenOfUntypedObjects(t *testing.T) {
	list := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{*newShop("one"), *newShop("two")}}
	got := failuresOf(t, func(t testing.TB) { facadetest.Golden(t, "testdata/untyped.golden", list, newShop("three")) })
	if got != "" {
		t.Error(got)
	}
}

func TestWhatGoldenFails(t *testing.T) {
	t.Setenv("FACADETEST_UPDATE", "0")
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	many := strings.Repeat("a line\n", 500)
	cases := map[string]struct {
		reason string
		file   string
		parts  []any
		want   []string
	}{
		"Missing": {
			reason: "a missing file is reported with the command that creates it, and its content",
			file:   filepath.Join(folder, "missing.golden"), parts: []any{"new text"},
			want: []string{
				"there is no golden file", "missing.golden", "-run '^TestWhatGoldenFails$/^Missing$'",
				"-facadetest.update", "FACADETEST_UPDATE=1", "new text\n",
			},
		},
		"Different": {
			reason: "different lines are reported with the lines around them",
			file:   write("different.golden", "one\ntwo\nthree\n"), parts: []any{"one\nzwei\nthree\n"},
			want: []string{
				"different.golden", "-facadetest.update",
				"--- golden\n+++ got\n@@ -1,3 +1,3 @@\n one\n-two\n+zwei\n three\n",
			},
		},
		"Long": {
			reason: "a long difference is shortened",
			file:   write("long.golden", "short\n"), parts: []any{many},
			want: []string{"and 444 more lines"},
		},
		"Nothing": {
			reason: "a call without anything to compare is an error",
			file:   write("nothing.golden", ""), want: []string{"there is nothing to compare"},
		},
		"Nil": {
			reason: "a nil object is an error",
			file:   write("nil.golden", "null\n"), parts: []any{(*corev1.ConfigMap)(nil)},
			want: []string{"part 0, a *v1.ConfigMap", "nil"},
		},
		"Equal": {
			reason: "line ends of Windows are accepted", file: write("equal.golden", "one\r\ntwo\r\n"),
			parts: []any{"one\ntwo"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := failuresOf(t, func(t testing.TB) { facadetest.Golden(t, tc.file, tc.parts...) })
			if (got == "") != (len(tc.want) == 0) {
				t.Errorf("%s: got the failure %q", tc.reason, got)
			}
			contains(t, got, tc.want...)
		})
	}
}

func TestOneGoldenFileForTwoTests(t *testing.T) {
	t.Setenv("FACADETEST_UPDATE", "1")
	file := filepath.Join(t.TempDir(), "deep", "both.golden")
	for _, text := range []string{"one", "one", "another"} {
		t.Run(text, func(t *testing.T) {
			got := failuresOf(t, func(t testing.TB) { facadetest.Golden(t, file, text) })
			if text == "one" && got != "" {
				t.Errorf("the same text must be accepted again: %s", got)
			}
			if text != "one" {
				contains(t, got, "asked for twice", "TestOneGoldenFileForTwoTests/one", "-one\n+another\n")
			}
		})
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "one\n" {
		t.Errorf("the file must have the first text, got %q, %v", text, err)
	}
}

func TestAFailedTestWritesNoGoldenFile(t *testing.T) {
	t.Setenv("FACADETEST_UPDATE", "yes")
	file := filepath.Join(t.TempDir(), "failed.golden")
	failed := &recordingTB{TB: t, hasFailedBefore: true}
	facadetest.Golden(failed, file, "half of it")
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("a failed test must not write the file: got %v", err)
	}
}
