package peering_test

import (
	"context"
	"slices"
	"time"

	"github.com/kopf-runtime/kopf-runtime/peering"
)

func (w *operatorSimulation) object() map[string]any {
	return w.bench.server.Object(w.bench.resource, "", "default")
}

func (w *operatorSimulation) history() []map[string]any {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clip(w.states)
}

// remove removes a record, as people do, and suspended operators of Kopf.
func (w *operatorSimulation) remove(identity string) {
	w.bench.server.Edit(w.bench.resource, "", "default", func(object map[string]any) {
		delete(object["status"].(map[string]any), identity)
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note("the record of %s is removed", identity)
}

// has returns whether the object has a record of the operator.
func (w *operatorSimulation) has(identity string) bool {
	status, _ := w.object()["status"].(map[string]any)
	return status[identity] != nil
}

// skewed is an object as an operator sees it whose clock is ahead.
type skewed struct {
	peering.SharedObject

	ahead time.Duration
	town  *operatorSimulation
}

func (s skewed) PatchStatus(
	ctx context.Context, status map[string]any, resourceVersion string,
) (map[string]any, error) {
	object, err := s.SharedObject.PatchStatus(ctx, shift(status, s.ahead), resourceVersion)
	if err != nil {
		return nil, err
	}
	s.town.mu.Lock()
	s.town.states = append(s.town.states, object)
	s.town.mu.Unlock()
	return shifted(object, -s.ahead), nil
}

func shifted(object map[string]any, by time.Duration) map[string]any {
	status, _ := object["status"].(map[string]any)
	return map[string]any{"metadata": object["metadata"], "status": shift(status, by)}
}

func shift(status map[string]any, by time.Duration) map[string]any {
	moved := map[string]any{}
	for identity, one := range status {
		record, ok := one.(map[string]any)
		if !ok {
			moved[identity] = one
			continue
		}
		fields := map[string]any{}
		for key, value := range record {
			fields[key] = value
		}
		at, _ := time.Parse(time.RFC3339Nano, fields["lastseen"].(string))
		fields["lastseen"] = at.Add(by).Format("2006-01-02T15:04:05.999999-07:00")
		moved[identity] = fields
	}
	return moved
}
