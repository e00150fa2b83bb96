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

// The variables of each expression, as in the policies of the API server.
const (
	objectVariable    = plugincel.ObjectVarName
	oldObjectVariable = plugincel.OldObjectVarName
)

// baseEnvironment is the CEL environment of API servers of this version of the libraries and of the previous one:
// during an upgrade, both evaluate the same policies.
var baseEnvironment = sync.OnceValue(func() *environment.EnvSet {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
})

// conditionCompiler compiles expressions with the API server's code for policies, in which objects have no type.
// Compiling the environment is slow, so it is shared by all rules.
var conditionCompiler = sync.OnceValue(func() plugincel.ConditionCompiler {
	return plugincel.NewConditionCompiler(baseEnvironment())
})

// untypedEnvironment is the environment for objects of any type.
var untypedEnvironment = sync.OnceValues(func() (*cel.Env, error) { return newEnvironment(nil) })

// newEnvironment returns an environment with object and oldObject of the type and no other variables; nil is for any
// type. The API server's environment has more variables, such as request, which do not exist in an operator.
func newEnvironment(object *apiservercel.DeclType) (*cel.Env, error) {
	// The options apply to all versions: 1.0 precedes every version of Kubernetes in use.
	options := environment.VersionedOptions{IntroducedVersion: version.MajorMinor(1, 0)}
	typ := cel.DynType
	if object != nil {
		typ = object.CelType()
		options.DeclTypes = []*apiservercel.DeclType{object}
	}
	options.EnvOptions = []cel.EnvOption{cel.Variable(objectVariable, typ), cel.Variable(oldObjectVariable, typ)}
	extended, err := baseEnvironment().Extend(options, environment.StrictCostOpt)
	if err != nil {
		return nil, fmt.Errorf("making the environment of CEL: %w", err)
	}
	return extended.NewExpressionsEnv(), nil
}

// source implements the API server's interface for one expression of a rule.
type source struct {
	text string
	typ  *cel.Type
}

// GetExpression returns the text of the expression.
func (s *source) GetExpression() string { return s.text }

// ReturnTypes returns the allowed result types.
func (s *source) ReturnTypes() []*cel.Type { return []*cel.Type{s.typ} }

// compileExpressions compiles the expressions, so that the rule can be evaluated. It reports variables that only exist
// in API servers.
func (r *Rule) compileExpressions() (err error) {
	env, err := untypedEnvironment()
	if err != nil {
		return err
	}
	tree, issues := env.Compile(r.expression)
	if issues.Err() != nil {
		return describeIssues("the expression", issues, nil)
	}
	if r.condition, err = compileEvaluator(r.expression, cel.BoolType); err != nil {
		return err
	}
	if r.messageExpression != "" {
		if _, issues := env.Compile(r.messageExpression); issues.Err() != nil {
			return describeIssues("MessageExpression", issues, nil)
		}
		if r.messageEvaluator, err = compileEvaluator(r.messageExpression, cel.StringType); err != nil {
			return fmt.Errorf("MessageExpression: %w", err)
		}
	}
	return r.checkNullReads(tree)
}

// compileEvaluator returns an expression that the API server's own code evaluates.
func compileEvaluator(text string, typ *cel.Type) (plugincel.ConditionEvaluator, error) {
	all := conditionCompiler().CompileCondition(
		[]plugincel.ExpressionAccessor{&source{text, typ}}, plugincel.OptionalVariableDeclarations{},
		environment.NewExpressions,
	)
	err := errors.Join(all.CompilationErrors()...)
	// The compiler cannot check the type of a field of an untyped object, and its error does not say how to fix that.
	if err != nil && strings.HasSuffix(err.Error(), "but got dyn") {
		err = fmt.Errorf("%w, which may be anything: compare it, as in object.spec.enabled == true, or convert it, "+
			"as in string(object.spec.name)", err)
	}
	return all, err
}

// The messages of the CEL compiler for which a hint exists.
var (
	undefinedField = regexp.MustCompile(`undefined field '([^']*)'`)
	undeclaredName = regexp.MustCompile(
		`undeclared reference to '(request|authorizer|namespaceObject|params|variables)'`,
	)
)

// describeIssues returns the compiler's errors with their positions in the expression. It adds hints, such as a similar
// field name.
func describeIssues(what string, issues *cel.Issues, names []string) error {
	var found []error
	for _, issue := range issues.Errors() {
		text := strings.TrimSuffix(issue.Message, " (in container '')")
		if match := undefinedField.FindStringSubmatch(text); match != nil {
			if meant := nearestName(match[1], names); meant != "" {
				text += fmt.Sprintf(": did you mean %s?", meant)
			}
		}
		if undeclaredName.MatchString(text) {
			text += fmt.Sprintf(": a rule knows %s and %s alone", objectVariable, oldObjectVariable)
		}
		found = append(found, fmt.Errorf(
			"%s: line %d, column %d: %s", what, issue.Location.Line(), issue.Location.Column()+1, text,
		))
	}
	return errors.Join(found...)
}
