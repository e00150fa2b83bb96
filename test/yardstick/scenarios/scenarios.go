package scenarios

import (
	"context"
	"slices"
)

// Scenario is a sequence of phases with operators and objects.
type Scenario struct {
	Name, Description string
	// Objects is the default number of objects.
	Objects int
	// TypedOnly excludes contenders that do not use the available Go type.
	TypedOnly bool
	// IsSeparate excludes contenders that do not play only this scenario.
	IsSeparate bool

	prepare, cleanUp func(context.Context, *Bench) error // once for all rounds; can be nil
	phases           []phase
}

// phase is a named part of a scenario.
type phase struct {
	name string
	run  func(context.Context, *trial) error
}

// All lists the scenarios in the order in which they run.
var All = []Scenario{
	{
		Name: "changes", Objects: 3000,
		Description: "objects are created, changed, changed while the operator is down, deleted",
		phases: []phase{
			{"start", startReady}, {"create", create}, {"update", update}, {"downtime", downtime}, {"delete", remove},
		},
	},
	{
		Name: "timers", Objects: 2000,
		Description: "each object has a timer that does nothing every five seconds",
		phases:      []phase{{"start", startReady}, {"load", load}, {"ticking", ticking}},
	},
	{
		Name: "restart", Objects: 10000,
		Description: "an operator starts over objects that are handled and unchanged: nothing may be written",
		phases:      []phase{{"start", startReady}, {"load", load}, {"restart", restart}, {"probe", probe}},
	},
	{
		Name: "latency", Objects: 500,
		Description: "changes come at a steady rate; how long after it was sent does a change reach its handler",
		phases:      []phase{{"start", startReady}, {"load", load}, {"steady", steady}},
	},
	{
		Name: "pods", Objects: 10000, TypedOnly: true,
		Description: "an operator starts over pods, with an index of them by node and a handler that sees them all",
		prepare:     createPods, cleanUp: deletePods,
		phases: []phase{{"start", seeAll}},
	},
	{
		Name: "idle", IsSeparate: true,
		Description: "a program starts where nothing is to be done, and goes on to do nothing",
		phases:      []phase{{"start", startAlone}, {"rest", measureIdle}},
	},
}

// Play runs all rounds of a scenario.
func (s Scenario) Play(ctx context.Context, b *Bench) error {
	if s.prepare != nil {
		if err := s.prepare(ctx, b); err != nil {
			return err
		}
	}
	for round := range b.Rounds {
		for _, c := range b.turns(s, round) {
			if err := s.playOne(ctx, b, c, round); err != nil {
				return err
			}
		}
	}
	if s.cleanUp == nil {
		return nil
	}
	return s.cleanUp(ctx, b)
}

// turns returns the contenders of a round. Every other round is reversed, because the growth of the servers would
// otherwise always affect the last contender.
func (b *Bench) turns(s Scenario, round int) []Contender {
	contenders := s.Fitting(b.Contenders)
	if round%2 == 1 {
		slices.Reverse(contenders)
	}
	return contenders
}

// Fitting returns the contenders that can play the scenario.
func (s Scenario) Fitting(contenders []Contender) []Contender {
	return slices.DeleteFunc(slices.Clone(contenders), func(c Contender) bool {
		switch {
		case s.IsSeparate || c.OnlyScenario != "":
			return c.OnlyScenario != s.Name
		default:
			return s.TypedOnly && c.IsDynamic || slices.Contains(c.SkippedScenarios, s.Name)
		}
	})
}
