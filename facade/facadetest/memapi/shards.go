package memapi

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"hash/fnv"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// shardSelector selects objects by the hash of a field, like a shardSelector in a list or a watch. The zero value
// selects all objects.
type shardSelector struct {
	// field is a field of the metadata, "uid" or "namespace".
	field  string
	ranges []hashRange
}

// hashRange contains the hashes from start on and below end, both hexadecimal numbers as in the request.
type hashRange struct{ start, end string }

// IgnoreShardSelector makes the server ignore the parameter shardSelector, like a real server without the feature gate
// ShardedListAndWatch: lists and watches then have all objects.
func (s *Server) IgnoreShardSelector() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ignoresShards = true
}

// parseShards parses a shardSelector. Like the real server, it answers a malformed one with the status 500.
func (s *Server) parseShards(text string) (shardSelector, error) {
	if text == "" || s.ignoresShards {
		return shardSelector{}, nil
	}
	var shards shardSelector
	parsed, err := parseExpression(text)
	if err == nil {
		err = shards.addRanges(parsed)
	}
	if err != nil {
		return shardSelector{}, internalError(fmt.Errorf("invalid shard selector: %w", err))
	}
	return shards, nil
}

// parseExpression parses an expression in CEL. For calls and "||", the syntax of Go is equal, but for quotes, lines and
// a comma at the end of arguments.
func parseExpression(text string) (ast.Expr, error) {
	switch compact := strings.Join(strings.Fields(text), ""); {
	case compact == "":
		return nil, errors.New("empty shard selector is not allowed; omit the parameter for unfiltered lists")
	case strings.Contains(compact, ",)"):
		return nil, errors.New("expected an argument after the comma")
	}
	return parser.ParseExpr(strings.NewReplacer("'", `"`, "\n", " ").Replace(text))
}

// addRanges adds the ranges of an expression: a call of shardRange, or several joined by "||".
func (s *shardSelector) addRanges(e ast.Expr) error {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return s.addRanges(e.X)
	case *ast.BinaryExpr:
		if e.Op != token.LOR {
			return fmt.Errorf("unsupported function \"_%s_\"; only shardRange() and || are allowed", e.Op)
		}
		// The first error is the answer, as in the real server.
		if err := s.addRanges(e.X); err != nil {
			return err
		}
		return s.addRanges(e.Y)
	case *ast.CallExpr:
		if name, _ := e.Fun.(*ast.Ident); name == nil || name.Name != "shardRange" {
			return fmt.Errorf("unsupported function %q; only shardRange() and || are allowed", dotted(e.Fun))
		}
		return s.addRange(e.Args)
	default:
		return errors.New("expected shardRange() call or || operator")
	}
}

// addRange adds the range of one call of shardRange. All ranges must be about one field.
func (s *shardSelector) addRange(arguments []ast.Expr) error {
	if len(arguments) != 3 {
		return fmt.Errorf("shardRange() requires exactly 3 arguments, got %d", len(arguments))
	}
	path := dotted(arguments[0])
	field := strings.TrimPrefix(path, "object.metadata.")
	if field == path || field != "uid" && field != "namespace" {
		return fmt.Errorf("unsupported field path %q; supported: object.metadata.uid, object.metadata.namespace", path)
	}
	start, err := hashBound(arguments[1], "hexStart")
	if err != nil {
		return err
	}
	end, err := hashBound(arguments[2], "hexEnd")
	if err != nil {
		return err
	}
	if !isBelow(start, end) {
		return fmt.Errorf("shard range start %s must be less than end %s", start, end)
	}
	if s.field != "" && s.field != field {
		return fmt.Errorf("all shard ranges must use the same field, got %q and %q", "object.metadata."+s.field, path)
	}
	s.field, s.ranges = field, append(s.ranges, hashRange{start, end})
	return nil
}

// dotted returns a path such as object.metadata.uid as text, or "" for other expressions.
func dotted(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return dotted(e.X) + "." + e.Sel.Name
	default:
		return ""
	}
}

// hashBound reads a bound of a range, 16 digits in quotes. Only the end of all hashes has 17.
func hashBound(e ast.Expr, name string) (string, error) {
	literal, _ := e.(*ast.BasicLit)
	if literal == nil || literal.Kind != token.STRING {
		return "", fmt.Errorf("%s must be a string literal", name)
	}
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	digits, ok := strings.CutPrefix(text, "0x")
	switch {
	case !ok:
		return "", fmt.Errorf("%s must have '0x' prefix, got %q", name, text)
	case strings.Trim(digits, "0123456789abcdef") != "":
		return "", fmt.Errorf("%s: invalid hex character in %q", name, text)
	case len(digits) != 16 && text != "0x10000000000000000":
		return "", fmt.Errorf("%s must be a 0x-prefixed 16-digit hex value, got %q", name, text)
	}
	return text, nil
}

// isBelow compares two hashes. Only the end of all hashes has more digits than the other ones.
func isBelow(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }

// matchesObject reports whether an object is in one of the ranges.
func (s shardSelector) matchesObject(object *unstructured.Unstructured) bool {
	if s.field == "" {
		return true
	}
	value := string(object.GetUID())
	if s.field == "namespace" {
		value = object.GetNamespace()
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(value)) // a hash does not fail
	hash := fmt.Sprintf("0x%016x", sum.Sum64())
	for _, r := range s.ranges {
		if !isBelow(hash, r.start) && isBelow(hash, r.end) {
			return true
		}
	}
	return false
}

// addInfo adds the selector to the metadata of a list. The real server does not do so for custom resources, nor for
// answers with metadata only.
func (s shardSelector) addInfo(t target, metadata map[string]any) {
	if s.field == "" || t.schema != nil || t.isMetadataOnly {
		return
	}
	var all []string
	for _, r := range s.ranges {
		all = append(all, fmt.Sprintf("shardRange(object.metadata.%s, '%s', '%s')", s.field, r.start, r.end))
	}
	metadata["shardInfo"] = map[string]any{"selector": strings.Join(all, " || ")}
}
