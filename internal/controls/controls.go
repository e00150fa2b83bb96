package controls

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/asciijson"
	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// Mode selects the handlers that a request runs again.
type Mode string

// The modes.
const (
	// Failed runs the handlers again that have not succeeded.
	Failed Mode = "failed"
	// All handles the object again as if it were new.
	All Mode = "all"
)

// requestLimit is the most bytes of a request: the operator copies it into its answer.
const requestLimit = 256

// startedMark precedes a request in the answer while its handlers are not finished.
const startedMark = "started "

// RunRequest is a request for another run of the handlers of one object. The zero value is none.
type RunRequest struct {
	Mode Mode
	// Value is the whole value of the annotation: the mode, a colon, and a token. Its copy is the answer.
	Value string
}

// NewRequest returns the request with a token. Two requests differ by their tokens.
func NewRequest(mode Mode, token string) RunRequest {
	return RunRequest{Mode: mode, Value: string(mode) + ":" + token}
}

// ParseRequest reads the value of the annotation. An empty value is not a request.
func ParseRequest(value string) (RunRequest, error) {
	mode, token, both := strings.Cut(value, ":")
	switch {
	case value == "":
		return RunRequest{}, nil
	case len(value) > requestLimit:
		return RunRequest{}, fmt.Errorf("it has %d bytes, more than %d: choose a shorter token", len(value),
			requestLimit)
	case Mode(mode) != Failed && Mode(mode) != All, !both, token == "":
		return RunRequest{}, fmt.Errorf("%q is neither \"failed:TOKEN\" nor \"all:TOKEN\", with any text as the token",
			storage.TextExcerpt(value))
	default:
		return RunRequest{Mode: Mode(mode), Value: value}, nil
	}
}

// StartedAnswer returns the answer while the handlers of the request are not finished.
func (r RunRequest) StartedAnswer() string { return startedMark + r.Value }

// IsUnfinished reports whether an answer is one of [RunRequest.StartedAnswer].
func IsUnfinished(answer string) bool { return strings.HasPrefix(answer, startedMark) }

// Pause is what a pause of one object covers.
type Pause int

// The pauses.
const (
	// NotPaused: the object is handled.
	NotPaused Pause = iota
	// PausedChanges: only the deletion of the object is handled.
	PausedChanges
	// PausedDeletion: nothing is handled, not even the deletion.
	PausedDeletion
)

// The values of the annotation for a pause.
const (
	PauseValue         = "true"
	PauseDeletionValue = "deletion"
)

// ParsePause reads the value of the annotation; nil is an absent one. An unknown value is an error, and does not pause.
func ParsePause(value any) (Pause, error) {
	switch value {
	case nil, "", "false":
		return NotPaused, nil
	case PauseValue:
		return PausedChanges, nil
	case PauseDeletionValue:
		return PausedDeletion, nil
	}
	return NotPaused, fmt.Errorf("%q is neither %q nor %q", storage.TextExcerpt(fmt.Sprint(value)), PauseValue,
		PauseDeletionValue)
}

// Covers reports whether the handlers of an object are skipped, given whether it is being deleted.
func (p Pause) Covers(deleting bool) bool {
	return p == PausedDeletion || p == PausedChanges && !deleting
}

// The limits of the stored failures: the object has little room for annotations, and users read them by kubectl.
const (
	mostFailures  = 20
	messageLimit  = 256
	failuresLimit = 8192
)

// Failures are the handlers that have failed permanently, by their ids.
type Failures map[string]Failure

// Failure is the permanent failure of one handler.
type Failure struct {
	// Reason is the purpose of the handler's record: create, update, delete or resume.
	Reason string
	// At is the time of the failure; zero if unknown.
	At time.Time
	// Message is the error; empty if it must not be stored.
	Message string
}

// Encode returns the failures as JSON in one line; empty without any. If there are many, the last ids are left out.
func (f Failures) Encode() (text string, err error) {
	stored := map[string]any{}
	for _, id := range slices.Sorted(maps.Keys(f)) {
		one := map[string]any{"reason": f[id].Reason}
		if !f[id].At.IsZero() {
			one["at"] = progress.FormatTimestamp(f[id].At.UTC())
		}
		if f[id].Message != "" {
			one["message"] = asciijson.CutText(f[id].Message, messageLimit)
		}
		stored[id] = one
		longer, err := asciijson.Marshal(stored)
		if err != nil {
			return "", fmt.Errorf("encoding the failed handlers: %w", err)
		}
		if len(longer) > failuresLimit || len(stored) > mostFailures {
			break
		}
		text = longer
	}
	return text, nil
}

// ParseFailures reads the value of the annotation. Entries of another form are left out.
func ParseFailures(value any) (Failures, error) {
	stored, err := storage.ParseObject(value)
	if err != nil || len(stored) == 0 {
		return nil, err
	}
	found := Failures{}
	for id, value := range stored {
		one, ok := value.(map[string]any)
		if !ok || len(found) == mostFailures {
			continue
		}
		f := Failure{}
		f.Reason, _ = one["reason"].(string)
		f.Message, _ = one["message"].(string)
		at, _ := one["at"].(string)
		f.At, _ = progress.ParseTimestamp(at) // without a time, the failure counts as well
		f.Message = storage.TextExcerpt(f.Message)
		found[id] = f
	}
	return found, nil
}
