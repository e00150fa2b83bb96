package conditions

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kopf-runtime/kopf-runtime/storage"
)

// The limits of metav1.Condition in its schema, in bytes. The API server counts characters, so a limit in bytes is
// never too long.
const (
	typeLimit    = 316
	reasonLimit  = 1024
	messageLimit = 32768
)

// The values of a condition's status.
const (
	True    = "True"
	False   = "False"
	Unknown = "Unknown"
)

// The patterns of metav1.Condition: a type without a domain, and a reason.
var (
	plainTypePattern = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)
	reasonPattern    = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)
)

// Condition is one item of status.conditions, without its transition time.
type Condition struct {
	// Type is the aspect that the condition describes, such as "Ready"; with a domain before a slash if others may have
	// the same name.
	Type string
	// Status is True, False or Unknown.
	Status string
	// Reason is one word in camel case; Message is for people.
	Reason, Message string
	// Generation is the generation of the object that the condition describes; zero is unknown.
	Generation int64
}

// CheckFields returns an error, with the name of the field, for a value that the API server would refuse. Long messages
// are not an error, because they are shortened.
func (c Condition) CheckFields() error {
	if err := checkType(c.Type); err != nil {
		return err
	}
	if c.Status != True && c.Status != False && c.Status != Unknown {
		return fmt.Errorf("status %q: it must be %s, %s or %s", c.Status, True, False, Unknown)
	}
	if len(c.Reason) > reasonLimit || !reasonPattern.MatchString(c.Reason) {
		return fmt.Errorf("reason %q: it must be one word in camel case of at most %d letters, digits and "+
			`underscores, such as "QuotaExceeded": texts go into the message`, shortenText(c.Reason, 64), reasonLimit)
	}
	return nil
}

// checkType checks a type, with or without a domain. The message shortens a very long type.
func checkType(text string) error {
	short := len(text) <= typeLimit
	if short && (plainTypePattern.MatchString(text) || len(validation.IsQualifiedName(text)) == 0) {
		return nil
	}
	return fmt.Errorf(`type %q: it must be a word in camel case such as "DatabaseReady", maybe behind a domain and a `+
		"slash", shortenText(text, 64))
}

// SetCondition puts the condition into the status of the object, in place of the one of its type. Other conditions stay
// as they are, including unknown fields. The transition time changes only with the status. Set modifies the object in
// place.
//
// It returns an error if the status is not a mapping, or its conditions are not a list.
func SetCondition(body map[string]any, c Condition, now time.Time) error {
	status, list, err := readStatus(body)
	if err != nil {
		return err
	}
	// Copy the status: the map may be shared with other versions of the object.
	copied := make(map[string]any, len(status)+1)
	maps.Copy(copied, status)
	copied["conditions"] = putCondition(list, c, now)
	body["status"] = copied
	return nil
}

// CheckStatus returns an error if the object cannot have conditions, because its status is not a mapping or its
// conditions are not a list.
func CheckStatus(body map[string]any) error {
	_, _, err := readStatus(body)
	return err
}

// readStatus returns the status and its conditions; nil for missing ones.
func readStatus(body map[string]any) (status map[string]any, list []any, err error) {
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

// findCondition returns the first condition of the type; nil if there is none.
func findCondition(list []any, conditionType string) map[string]any {
	for _, item := range list {
		if held, ok := item.(map[string]any); ok && held["type"] == conditionType {
			return held
		}
	}
	return nil
}

// putCondition returns the list with the condition. All other conditions of its type are removed.
func putCondition(list []any, c Condition, now time.Time) []any {
	// Keep unknown fields of the present condition, and its transition time as long as the status stays.
	fresh := make(map[string]any, len(conditionFields))
	maps.Copy(fresh, findCondition(list, c.Type))
	if fresh["status"] != c.Status || fresh["lastTransitionTime"] == nil {
		fresh["lastTransitionTime"] = now.UTC().Format(time.RFC3339)
	}
	fresh["type"], fresh["status"], fresh["reason"] = c.Type, c.Status, c.Reason
	fresh["message"] = shortenText(c.Message, messageLimit)
	// Without a known generation, a former one would be wrong.
	if delete(fresh, "observedGeneration"); c.Generation > 0 {
		fresh["observedGeneration"] = c.Generation
	}
	at := slices.IndexFunc(list, hasType(c.Type))
	if at < 0 {
		at = len(list)
	}
	// Drop the former condition, and duplicates, which other writers may have added.
	return slices.Insert(slices.Clip(dropCondition(list, c.Type)), at, any(fresh))
}

// dropCondition returns the list without conditions of the type. It does not copy the list if there are none.
func dropCondition(list []any, conditionType string) []any {
	if !slices.ContainsFunc(list, hasType(conditionType)) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), hasType(conditionType))
}

// hasType returns a predicate for conditions of the type.
func hasType(conditionType string) func(item any) bool {
	return func(item any) bool {
		held, ok := item.(map[string]any)
		return ok && held["type"] == conditionType
	}
}

// shortenText cuts a text to a number of bytes, at the boundary of a character.
func shortenText(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return storage.CutText(text, limit-len("…"))
}
