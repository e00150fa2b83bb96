package rules

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/version"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// The variables of every expression.
const (
	newName = plugincel.ObjectVarName
	oldName = plugincel.OldObjectVarName
)

// base is the CEL of API servers of this version of the libraries and of the one before, which may stand beside it.
var base = sync.OnceValue(func() *environment.EnvSet {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
})

// policies compiles expressions as the API server does for a policy: objects are of no type in them.
var policies = sync.OnceValue(func() plugincel.ConditionCompiler { return plugincel.NewConditionCompiler(base()) })

// untyped knows objects of any type.
var untyped = sync.OnceValues(func() (*cel.Env, error) { return with(nil) })

// with is an environment that knows object and oldObject of the type and nothing else; nil is for any type.
func with(object *apiservercel.DeclType) (*cel.Env, error) {
	options := environment.VersionedOptions{IntroducedVersion: version.MajorMinor(1, 0)}
	typ := cel.DynType
	if object != nil {
		typ = object.CelType()
		options.DeclTypes = []*apiservercel.DeclType{object}
	}
	options.EnvOptions = []cel.EnvOption{cel.Variable(newName, typ), cel.Variable(oldName, typ)}
	extended, err := base().Extend(options, environment.StrictCostOpt)
	if err != nil {
		return nil, fmt.Errorf("making the environment of CEL: %w", err)
	}
	return extended.NewExpressionsEnv(), nil
}

// source is one expression of a rule, as the libraries take it.
type source struct {
	text string
	typ  *cel.Type
}

// GetExpression is its text.
func (s *source) GetExpression() string { return s.text }

// ReturnTypes are what it may give.
func (s *source) ReturnTypes() []*cel.Type { return []*cel.Type{s.typ} }

// compile makes the rule ready for objects.
func (r *Rule) compile() (err error) {
	env, err := untyped()
	if err != nil {
		return err
	}
	tree, issues := env.Compile(r.expression)
	if issues.Err() != nil {
		return described("the expression", issues, nil)
	}
	if r.condition, err = ready(r.expression, cel.BoolType); err != nil {
		return err
	}
	if r.messageExpression != "" {
		if _, issues := env.Compile(r.messageExpression); issues.Err() != nil {
			return described("MessageExpression", issues, nil)
		}
		if r.text, err = ready(r.messageExpression, cel.StringType); err != nil {
			return fmt.Errorf("MessageExpression: %w", err)
		}
	}
	return r.checkAbsent(tree)
}

// ready is an expression that can be evaluated, by the API server's own code.
func ready(text string, typ *cel.Type) (plugincel.ConditionEvaluator, error) {
	all := policies().CompileCondition(
		[]plugincel.ExpressionAccessor{&source{text, typ}}, plugincel.OptionalVariableDeclarations{},
		environment.NewExpressions,
	)
	err := errors.Join(all.CompilationErrors()...)
	if err != nil && strings.HasSuffix(err.Error(), "but got dyn") {
		err = fmt.Errorf("%w, which may be anything: compare it, as in object.spec.enabled == true, or convert it, "+
			"as in string(object.spec.name)", err)
	}
	return all, err
}

var (
	undefinedField = regexp.MustCompile(`undefined field '([^']*)'`)
	undeclaredName = regexp.MustCompile(
		`undeclared reference to '(request|authorizer|namespaceObject|params|variables)'`,
	)
)

// described says what CEL says of an expression, where, and what could be meant.
func described(what string, issues *cel.Issues, names []string) error {
	var found []error
	for _, issue := range issues.Errors() {
		text := strings.TrimSuffix(issue.Message, " (in container '')")
		if match := undefinedField.FindStringSubmatch(text); match != nil {
			if meant := nearest(match[1], names); meant != "" {
				text += fmt.Sprintf(": did you mean %s?", meant)
			}
		}
		if undeclaredName.MatchString(text) {
			text += fmt.Sprintf(": a rule knows %s and %s alone", newName, oldName)
		}
		found = append(found, fmt.Errorf(
			"%s: line %d, column %d: %s", what, issue.Location.Line(), issue.Location.Column()+1, text,
		))
	}
	return errors.Join(found...)
}
