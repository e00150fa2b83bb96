package diffbase_test

import (
	"fmt"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// realistic is an object of about 2 KiB in JSON, as an operator meets it that has handled it before.
func realistic(b *testing.B, storage diffbase.Storage) object {
	b.Helper()
	containers := []any{}
	for i := range 4 {
		containers = append(containers, object{
			"name": fmt.Sprintf("container-%d", i), "image": "registry.example.org/team/image:v1.2.3",
			"env":       []any{object{"name": "MODE", "value": "production"}, object{"name": "LEVEL", "value": "info"}},
			"resources": object{"limits": object{"cpu": "500m", "memory": "256Mi"}, "requests": object{"cpu": "100m"}},
		})
	}
	body := object{
		"apiVersion": "example.org/v1", "kind": "Application",
		"metadata": object{
			"name": "app", "namespace": "default", "uid": "6f2ab1b2-0001-4c1f-9d3a-7d5d3a4c1e77",
			"resourceVersion": "123456",
			"labels": object{
				"app.kubernetes.io/name": "app", "app.kubernetes.io/part-of": "suite", "tier": "prod",
			},
			"annotations": object{"example.org/note": "by hand", "example.org/contact": "team@example.org"},
		},
		"spec":   object{"replicas": int64(3), "template": object{"spec": object{"containers": containers}}},
		"status": object{"phase": "Ready", "conditions": []any{object{"type": "Available", "status": "True"}}},
	}
	essence, err := storage.Build(body, nil)
	if err != nil {
		b.Fatalf("cannot build: %v", err)
	}
	patch := object{}
	if err := storage.Store(patch, body, essence); err != nil {
		b.Fatalf("cannot store: %v", err)
	}
	return merged(body, patch)
}

func BenchmarkBuild(b *testing.B) {
	storage := diffbase.Annotations{}
	body := realistic(b, storage)
	for name, extra := range map[string][]diff.Path{"plain": nil, "extra": paths("status.phase", "status.conditions")} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := storage.Build(body, extra); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkFetch(b *testing.B) {
	storage := diffbase.Annotations{}
	body := realistic(b, storage)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := storage.Fetch(body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStore(b *testing.B) {
	storage := diffbase.Annotations{}
	body := realistic(b, storage)
	essence, err := storage.Build(body, nil)
	if err != nil {
		b.Fatalf("cannot build: %v", err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := storage.Store(object{}, body, essence); err != nil {
			b.Fatal(err)
		}
	}
}
