// Command 12-indices looks up other objects without requests, and keeps values in memory.
package main

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/getting-started/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// operator has the values that handlers share.
type operator struct {
	footers *kopf.Index[string, string] // names of ConfigMaps, by the website that they are for
	visits  *kopf.Memo[visits]          // one value for each website
}

type visits struct {
	mu    sync.Mutex
	count int
}

func main() {
	op := newOperator()
	kopf.Main(op)
}

func newOperator() *kopf.Operator {
	op := kopf.New("websites.example.org", kopf.Settings{AddToScheme: runtime.SchemeBuilder{v1.AddToScheme}})
	websites := kopf.For(op, &v1.Website{})
	o := &operator{
		footers: kopf.NewIndex(kopf.For(op, &corev1.ConfigMap{}).MatchingLabels("site"), "footers", bySite),
		visits:  kopf.NewMemo[visits](websites),
	}
	websites.On("publish", kopf.CreateUpdateResume(), o.publish)
	return op
}

// bySite returns the entries of one ConfigMap: here, one value under one key.
func bySite(_ context.Context, m *corev1.ConfigMap) (map[string]string, error) {
	return map[string]string{m.Labels["site"]: m.Name}, nil
}

// publish reads the index and the memo. It sends no request.
func (o *operator) publish(ctx context.Context, c *kopf.Change[*v1.Website]) error {
	seen := o.visits.Of(c.Object)
	seen.mu.Lock()
	seen.count++
	count := seen.count
	seen.mu.Unlock()
	footers := slices.Sorted(slices.Values(o.footers.Get(c.Object.Name)))
	log.FromContext(ctx).Info("Published", "footers", footers, "count", count)
	return nil
}
