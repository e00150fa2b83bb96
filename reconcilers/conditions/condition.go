package conditions

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"
)

// The limits of Kubernetes' own schema for conditions, in bytes.
const (
	typeLimit    = 316
	reasonLimit  = 1024
	messageLimit = 32768
)

// The values that a status can have.
const (
	True    = "True"
	False   = "False"
	Unknown = "Unknown"
)

var (
	plainType   = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)
	reasonShape = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)
)

// Condition is one item of status.conditions, without its time.
type Condition struct {
	// Type is what it is about, such as "Ready"; with a domain before a slash, if others may have one of that name.
	Type string
	// Status is True, False or Unknown.
	Status string
	// Reason is a word in camel case; Message is for people.
	Reason, Message string
	// Generation is that of the object that this is about; zero is not known.
	Generation int64
}

// Check tells what the API server would refuse, by the name of the field. Long messages are no error: they are cut.
func (c Condition) Check() error {
	if err := checkType(c.Type); err != nil {
		return err
	}
	if c.Status != True && c.Status != False && c.Status != Unknown {
		return fmt.Errorf("status %q: it must be %s, %s or %s", c.Status, True, False, Unknown)
	}
	if len(c.Reason) > reasonLimit || !reasonShape.MatchString(c.Reason) {
		return fmt.Errorf("reason %q: it must be one word in camel case of at most %d letters, digits and "+
			`underscores, such as "QuotaExceeded": texts go into the message`, shortened(c.Reason, 64), reasonLimit)
	}
	return nil
}

func checkType(text string) error {
	short := len(text) <= typeLimit
	if short && (plainType.MatchString(text) || len(validation.IsQualifiedName(text)) == 0) {
		return nil
	}
	return fmt.Errorf(`type %q: it must be a word in camel case such as "DatabaseReady", maybe behind a domain and a `+
		"slash", shortened(text, 64))
}

// Set puts the condition into the status of the object, in the place of that of its type, if there is one. What others
// have there stays as it is, with fields that are not known here. The time of the transition moves only with the
// status. It changes the object in place.
//
// The error says what else stands where the status or its conditions should be.
func Set(body map[string]any, c Condition, now time.Time) error {
	status, list, err := read(body)
	if err != nil {
		return err
	}
	status = maps.Clone(status)
	if status == nil {
		status = map[string]any{}
	}
	status["conditions"] = put(list, c, now)
	body["status"] = status
	return nil
}

// Readable says what stands in the place of the status or of its conditions, so that the object cannot have any; nil if
// it can.
func Readable(body map[string]any) error {
	_, _, err := read(body)
	return err
}

// read gives the status and the conditions in it; nil if there are none.
func read(body map[string]any) (status map[string]any, list []any, err error) {
	held := body["status"]
	status, isMapping := held.(map[string]any)
	if held != nil && !isMapping {
		return nil, nil, fmt.Errorf("the status of the object is not a mapping, so it cannot have conditions: %T", held)
	}
	present := status["conditions"]
	list, isList := present.([]any)
	if present != nil && !isList {
		return nil, nil, fmt.Errorf("status.conditions of the object is not a list, which conditions need: %T", present)
	}
	return status, list, nil
}

// find gives the first condition of the type; nil if there is none.
func find(list []any, conditionType string) map[string]any {
	for _, item := range list {
		if held, ok := item.(map[string]any); ok && held["type"] == conditionType {
			return held
		}
	}
	return nil
}

// put gives the list with the condition. There is one of its type then.
func put(list []any, c Condition, now time.Time) []any {
	fresh := map[string]any{}
	if held := find(list, c.Type); held != nil {
		fresh = maps.Clone(held)
	}
	if fresh["status"] != c.Status || fresh["lastTransitionTime"] == nil {
		fresh["lastTransitionTime"] = now.UTC().Format(time.RFC3339)
	}
	fresh["type"], fresh["status"], fresh["reason"] = c.Type, c.Status, c.Reason
	fresh["message"] = shortened(c.Message, messageLimit)
	if delete(fresh, "observedGeneration"); c.Generation > 0 {
		fresh["observedGeneration"] = c.Generation
	}
	at := slices.IndexFunc(list, isOf(c.Type))
	if at < 0 {
		return append(slices.Clip(list), fresh)
	}
	rest := slices.DeleteFunc(slices.Clone(list[at+1:]), isOf(c.Type))
	return slices.Concat(list[:at], []any{fresh}, rest)
}

// without gives the list without conditions of the type.
func without(list []any, conditionType string) []any {
	if !slices.ContainsFunc(list, isOf(conditionType)) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), isOf(conditionType))
}

func isOf(conditionType string) func(item any) bool {
	return func(item any) bool {
		held, ok := item.(map[string]any)
		return ok && held["type"] == conditionType
	}
}

// shortened cuts a text to a number of bytes, at the border of a character.
func shortened(text string, limit int) string {
	const mark = "…"
	if len(text) <= limit {
		return text
	}
	end := limit - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}
