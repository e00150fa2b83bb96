package devcluster

import (
	"context"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// compileRules compiles the CEL rules of a schema, with the cost limits of the real server. It implements
// memapi.Extensions.CompileRules.
func compileRules(structural *schema.Structural) func(object, before map[string]any) field.ErrorList {
	// The validator is nil for a schema without rules.
	validator := cel.NewValidator(structural, true, celconfig.PerCallLimit)
	if validator == nil {
		return nil
	}
	// The rules of a schema are compiled once, and evaluated for each write.
	return func(object, before map[string]any) field.ErrorList {
		var former any
		var options []cel.Option
		if before != nil {
			former = before
			// Like the real server, accept unchanged fields that violate a rule, because the rule may be newer than the
			// fields.
			options = append(options, cel.WithRatcheting(
				common.NewCorrelatedObject(object, before, &model.Structural{Structural: structural}),
			))
		}
		// The second result is the remaining cost budget.
		problems, _ := validator.Validate(
			context.Background(), nil, structural, object, former, celconfig.RuntimeCELCostBudget, options...,
		)
		return problems
	}
}
