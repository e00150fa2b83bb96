package peering_test

import (
	"context"
	"slices"
	"time"

	"github.com/kopf-runtime/kopf-runtime/peering"
)

func (w *operatorSimulation) object() map[string]any {
	return w.fixture.server.Object(w.fixture.resource, "", "default")
}

func (w *operatorSimulation) history() []map[string]any {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clip(w.states)
}

// removeRecord removes a record, as people do, and suspended operators of Kopf.
func (w *operatorSimulation) removeRecord(identity string) {
	w.fixture.server.Edit(w.fixture.resource, "", "default", func(object map[string]any) {
		delete(object["status"].(map[string]any), identity)
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logEvent("the record of %s is removed", identity)
}

// hasRecord returns whether the object has a record of the operator.
func (w *operatorSimulation) hasRecord(identity string) bool {
	status, _ := w.object()["status"].(map[string]any)
	return status[identity] != nil
}

// skewedObject is an object as an operator sees it whose clock is ahead.
type skewedObject struct {
	peering.SharedObject

	clockSkew  time.Duration
	simulation *operatorSimulation
}

func (s skewedObject) PatchStatus(
	ctx context.Context, status map[string]any, resourceVersion string,
) (map[string]any, error) {
	object, err := s.SharedObject.PatchStatus(ctx, shiftRecords(status, s.clockSkew), resourceVersion)
	if err != nil {
		return nil, err
	}
	s.simulation.mu.Lock()
	s.simulation.states = append(s.simulation.states, object)
	s.simulation.mu.Unlock()
	return shiftObject(object, -s.clockSkew), nil
}

func shiftObject(object map[string]any, by time.Duration) map[string]any {
	status, _ := object["status"].(map[string]any)
	return map[string]any{"metadata": object["metadata"], "status": shiftRecords(status, by)}
}

func shiftRecords(status map[string]any, by time.Duration) map[string]any {
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
