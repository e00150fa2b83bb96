package main

import (
	"context"
	"slices"
	"testing"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/explorer"
)

// lifePost is the post for one life of the operator: letters of a killed operator do not arrive.
type lifePost struct {
	life *explorer.Life
	post *recordingPost
}

func (p lifePost) send(ctx context.Context, to, text string) (err error) {
	p.life.Do("send a letter", func() { err = p.post.send(ctx, to, text) })
	return err
}

// arrived returns the letters without duplicates.
func (b *recordingPost) arrived() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(b.letters)))
}

// The operator is killed at every point and started again. The final state must be that of a run without interruption:
// no object may be lost or left over. A letter may arrive twice, because sending it and recording that are two steps;
// so duplicates are not counted.
func TestSurvivesEveryCut(t *testing.T) {
	explorer.Explore(t, func() explorer.Scenario {
		sent := &recordingPost{}
		return explorer.Scenario{
			Server:   town,
			Operator: func(life *explorer.Life) *kopf.Operator { return newOperator(lifePost{life, sent}) },
			Play: func(p *explorer.Play) {
				ann := example(map[string]any{"field": "High Street"})
				p.Create(ann)
				p.Settle()
				p.Edit(ann, func() { _ = kopf.SetField(ann, "spec.field", "Low Road") })
				p.Settle()
				p.Delete(ann)
			},
			Outside: func() any { return sent.arrived() },
		}
	}, explorer.OutsideStays(), explorer.CutsOnly())
}
