package freezing_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// Namespaces that are named must have the object; of those that match a pattern, some must.
func TestNamespaces(t *testing.T) {
	kind := ofNamespace("kopf.dev")
	for name, c := range map[string]struct {
		reason     string
		namespaces []string
		unlisted   bool
		frozen     []string
		err, log   string
	}{
		"one":     {"it is named", []string{"a"}, false, []string{"a"}, "", "namespace=a"},
		"several": {"all are named", []string{"a", "b"}, false, []string{"a", "b"}, "", ""},
		"one lacks": {"the other pauses nevertheless", []string{"a", "empty"}, false, []string{"a"},
			`there is no KopfPeering "default" in the namespace "empty"`, ""},
		"pattern":   {"those without the object have no operators", []string{"*"}, false, []string{"a", "b"}, "", ""},
		"exception": {"as of a whole run", []string{"*,!b"}, false, []string{"a"}, "", ""},
		"brackets":  {"they are patterns", []string{"[ab]"}, false, []string{"a", "b"}, "", ""},
		"both":      {"it is named", []string{"empty", "a*"}, false, []string{"a"}, `"empty"`, ""},
		"no match":  {"a slip", []string{"x*"}, false, nil, "no namespace matches the patterns [x*]", ""},
		"no object": {"nobody is told", []string{"e*"}, false, nil,
			`no namespace of e* has a KopfPeering "default"`, ""},
		"unlisted": {"the pattern cannot be told", []string{"*"}, true, nil,
			"listing the namespaces for the patterns [*]", ""},
		"named but unlisted": {"it needs no list, and the others are told of", []string{"a", "b*"}, true,
			[]string{"a"}, "", "Patterns of namespaces are left out"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(kind)
			for _, namespace := range []string{"a", "b", "empty"} {
				b.server.Put(memapi.Resource{Version: "v1", Plural: "namespaces", Kind: "Namespace"},
					map[string]any{"metadata": map[string]any{"name": namespace}})
			}
			b.put(kind, "a", nil)
			b.put(kind, "b", nil)
			b.connection.Before = func(_ context.Context, r memapi.Request) error {
				if c.unlisted && r.Verb == "list" {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "", errors.New("no"))
				}
				return nil
			}
			err := b.carry(time.Minute, c.namespaces...)
			if (err == "") != (c.err == "") || !strings.Contains(err, c.err) {
				t.Errorf("%s: want %q in the error %q", c.reason, c.err, err)
			}
			if !strings.Contains(b.log.String(), c.log) {
				t.Errorf("%s: want %q in the log %s", c.reason, c.log, &b.log)
			}
			var frozen []string
			for _, namespace := range []string{"a", "b"} {
				if len(b.identities(t, kind, namespace)) > 0 {
					frozen = append(frozen, namespace)
				}
			}
			if d := cmp.Diff(c.frozen, frozen); d != "" {
				t.Errorf("%s: frozen (-want, +got):\n%s", c.reason, d)
			}
		})
	}
}
