package controls_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/controls"
)

func TestParseRequest(t *testing.T) {
	long := strings.Repeat("x", 300)
	tests := map[string]struct {
		reason, value string
		want          controls.Mode
		err           string
	}{
		"Empty":    {reason: "an empty value is not a request"},
		"Failed":   {reason: "the token follows the colon", value: "failed:1", want: controls.Failed},
		"All":      {reason: "a token can have colons, as times", value: "all:2026-01-02T03:04Z", want: controls.All},
		"NoToken":  {reason: "without a token, two requests would not differ", value: "all:", err: "neither"},
		"NoColon":  {reason: "a mode alone is an error", value: "failed", err: "neither"},
		"Unknown":  {reason: "an unknown mode is an error", value: "some:1", err: `"some:1" is neither`},
		"Started":  {reason: "an answer is not a request", value: "started all:1", err: "neither"},
		"Case":     {reason: "modes are lower case", value: "All:1", err: "neither"},
		"TooLong":  {reason: "a long value is an error, as it is copied", value: "all:" + long, err: "304 bytes"},
		"Binary":   {reason: "any text is a token", value: "all:\x00\xff", want: controls.All},
		"Multiple": {reason: "modes cannot be combined", value: "failed,all:1", err: "neither"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := controls.ParseRequest(tc.value)
			if got.Mode != tc.want || tc.err == "" && (err != nil || got.Value != tc.value) ||
				tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("%s: got %+v with error %v", tc.reason, got, err)
			}
		})
	}
}

func TestParsePause(t *testing.T) {
	for value, want := range map[any]controls.Pause{
		nil: controls.NotPaused, "": controls.NotPaused, "false": controls.NotPaused,
		"true": controls.PausedChanges, "deletion": controls.PausedDeletion,
	} {
		if got, err := controls.ParsePause(value); got != want || err != nil {
			t.Errorf("%v: got %v with error %v, want %v", value, got, err, want)
		}
	}
	for _, value := range []any{"yes", "True", int64(1), strings.Repeat("x", 9999)} {
		if got, err := controls.ParsePause(value); got != controls.NotPaused || err == nil || len(err.Error()) > 400 {
			t.Errorf("%v: an unknown value must be a short error and no pause: %v, %v", value, got, err)
		}
	}
	covered := []bool{
		controls.NotPaused.Covers(false), controls.PausedChanges.Covers(false), controls.PausedChanges.Covers(true),
		controls.PausedDeletion.Covers(true), controls.PausedDeletion.Covers(false),
	}
	if d := cmp.Diff([]bool{false, true, false, true, true}, covered); d != "" {
		t.Errorf("what the pauses cover: -want, +got:\n%s", d)
	}
}

func TestFailuresAreBounded(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	one := controls.Failures{"made": {Reason: "create", At: at, Message: "no such region"}}
	text, err := one.Encode()
	want := `{"made":{"at":"2026-01-02T03:04:05.000006+00:00","message":"no such region","reason":"create"}}`
	if text != want || err != nil {
		t.Errorf("got %s with error %v, want %s", text, err, want)
	}
	if back, err := controls.ParseFailures(text); err != nil || !cmp.Equal(one, back) {
		t.Errorf("read back: error %v:\n%s", err, cmp.Diff(one, back))
	}
	many := controls.Failures{}
	for i := range 500 {
		many[fmt.Sprintf("h%03d", i)] = controls.Failure{Message: strings.Repeat("ü", 5000)}
	}
	text, err = many.Encode()
	if back, _ := controls.ParseFailures(text); err != nil || len(text) > 8192 || len(back) < 10 || len(back) > 20 {
		t.Errorf("many failures take %d bytes for %d of them, error %v", len(text), len(back), err)
	}
	if text, err := (controls.Failures{}).Encode(); text != "" || err != nil {
		t.Errorf("no failures are %q with error %v, want no text", text, err)
	}
}

func FuzzParseFailures(f *testing.F) {
	f.Add(`{"a":{"reason":"create","at":"2026-01-02T03:04:05Z","message":"x"}}`)
	f.Add(`{"a":1,"b":{"at":7}}`)
	f.Add(`[`)
	f.Fuzz(func(t *testing.T, text string) {
		found, err := controls.ParseFailures(text)
		if err != nil {
			return
		}
		again, err := found.Encode()
		if err != nil || len(again) > 8192 {
			t.Fatalf("%q is read, but written with %d bytes, error %v", text, len(again), err)
		}
	})
}
