package clusterops_test

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

// TestNamespaces shows that a named namespace must have the object, while at least one match of a pattern must.
func TestNamespaces(t *testing.T) {
	kind := ofNamespace("kopf.dev")
	for name, c := range map[string]struct {
		reason     string
		namespaces []string
		unlisted   bool
		frozen     []string
		err, log   string
	}{
		"one":     {"a named namespace is frozen", []string{"a"}, false, []string{"a"}, "", "namespace=a"},
		"several": {"all named namespaces are frozen", []string{"a", "b"}, false, []string{"a", "b"}, "", ""},
		"one lacks": {"a named namespace without the object is an error, and the others are frozen",
			[]string{"a", "empty"}, false, []string{"a"},
			`there is no KopfPeering "default" in the namespace "empty"`, ""},
		"pattern": {"a pattern skips namespaces without the object",
			[]string{"*"}, false, []string{"a", "b"}, "", ""},
		"exception": {"a pattern with an exception leaves out that namespace",
			[]string{"*,!b"}, false, []string{"a"}, "", ""},
		"brackets": {"brackets make a pattern", []string{"[ab]"}, false, []string{"a", "b"}, "", ""},
		"both": {"a named namespace without the object is an error beside a pattern",
			[]string{"empty", "a*"}, false, []string{"a"}, `"empty"`, ""},
		"no match": {"a pattern without a match is an error",
			[]string{"x*"}, false, nil, "no namespace matches the patterns [x*]", ""},
		"no object": {"a pattern whose namespaces lack the object is an error", []string{"e*"}, false, nil,
			`no namespace of e* has a KopfPeering "default"`, ""},
		"unlisted": {"a pattern is an error if namespaces cannot be listed", []string{"*"}, true, nil,
			"listing the namespaces for the patterns [*]", ""},
		"named but unlisted": {"a named namespace is frozen even if patterns are left out", []string{"a", "b*"}, true,
			[]string{"a"}, "", "Patterns of namespaces are left out"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newPeeringCluster(kind)
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
			err := b.carryOrder(time.Minute, c.namespaces...)
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
