package facadetest

import (
	"encoding/json"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	_ goldenPart = Outcome[client.Object]{}
	_ goldenPart = Verdict[client.Object]{}
)

// goldenRows returns the fields of the outcome in the order of the struct. Empty fields are dropped later.
func (o Outcome[T]) goldenRows() (title string, rows []row, object client.Object, err error) {
	var events, subs []string
	for _, e := range o.Events {
		text := e.Type + " " + e.Reason + ": " + e.Message
		if e.About != "" {
			text = "about " + e.About + ": " + text
		}
		events = append(events, text)
	}
	for _, s := range o.Subs {
		text := s.ID + ": " + string(s.State)
		if s.Err != nil {
			text += ": " + s.Err.Error()
		}
		subs = append(subs, text)
	}
	return "outcome", []row{
		{"outcome", o.stateText()}, {"error", errorText(o.Err)}, {"awaited", o.Awaited}, {"patch", o.Patch},
		{"result", o.Result}, {"events", events}, {"subs", subs}, {"children", o.Children}, {"inPlace", o.InPlace},
	}, o.Object, nil
}

// stateText returns the state of the handler after the call.
func (o Outcome[T]) stateText() string {
	switch {
	case !o.Final && o.Called:
		// The remaining delay depends on the duration of the call, so it is rounded.
		return "called again in " + o.Delay.Round(time.Second).String()
	case !o.Called:
		return "not called"
	case o.Err != nil:
		return "failed"
	default:
		return "succeeded"
	}
}

// goldenRows returns the fields of the verdict in the order of the struct. The JSON patch becomes YAML. Empty fields
// are dropped later.
func (v Verdict[T]) goldenRows() (title string, rows []row, object client.Object, err error) {
	var patch any
	if len(v.Patch) > 0 {
		if err := json.Unmarshal(v.Patch, &patch); err != nil {
			return "", nil, nil, fmt.Errorf("reading the patch: %w", err)
		}
	}
	// A bool would be dropped as empty if it is false.
	word := "denied"
	if v.Allowed {
		word = "allowed"
	}
	return "verdict", []row{
		{"verdict", word}, {"error", errorText(v.Err)}, {"code", v.Code}, {"message", v.Message},
		{"warnings", v.Warnings}, {"patch", patch}, {"inPlace", v.InPlace},
	}, v.Object, nil
}

// errorText returns the text of the error, or an empty text for nil.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
