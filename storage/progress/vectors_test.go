package progress_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/storage/progress"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
	"github.com/kopf-runtime/kopf-runtime/test/vectors/progresstest"
)

func TestVectorsProgressFetch(t *testing.T) {
	vectors.Play(t, "progress_fetch", normalizedTime, func(t *testing.T, v vectors.Fields) (any, error) {
		vectors.Known(t, v, "storage", "key", "body")
		storage, err := progresstest.Storage(t, v["storage"])
		if err != nil {
			return nil, err
		}
		record, err := storage.Fetch(v.Object("body"), v.Text("key", ""))
		if err != nil || record == nil {
			return map[string]any{"record": nil}, err
		}
		return map[string]any{"record": record.JSONFields()}, nil
	})
}

// TestVectorsProgressStore shows that Kopf's default storage writes to annotations only: K-progress-annotations.
func TestVectorsProgressStore(t *testing.T) {
	vectors.Play(t, "progress_store", normalizedTime, func(t *testing.T, v vectors.Fields) (any, error) {
		vectors.Known(t, v, "storage", "key", "body", "patch", "record")
		storage, err := progresstest.Storage(t, v["storage"])
		if err != nil {
			return nil, err
		}
		record, err := progress.DecodeRecord(v.Object("record"))
		if err != nil {
			return nil, err
		}
		patch := v.Object("patch")
		err = storage.Store(patch, v.Object("body"), v.Text("key", ""), record)
		return map[string]any{"patch": patch}, err
	})
}

func TestVectorsProgressPurge(t *testing.T) {
	vectors.Play(t, "progress_purge", normalizedTime, func(t *testing.T, v vectors.Fields) (any, error) {
		vectors.Known(t, v, "storage", "key", "body", "patch")
		storage, err := progresstest.Storage(t, v["storage"])
		if err != nil {
			return nil, err
		}
		patch := v.Object("patch")
		storage.Purge(patch, v.Object("body"), v.Text("key", ""))
		return map[string]any{"patch": patch}, nil
	})
}

func TestVectorsProgressTouch(t *testing.T) {
	vectors.Play(t, "progress_touch", normalizedTime, func(t *testing.T, v vectors.Fields) (any, error) {
		vectors.Known(t, v, "storage", "body", "patch", "value")
		storage, err := progresstest.Storage(t, v["storage"])
		if err != nil {
			return nil, err
		}
		patch := v.Object("patch")
		storage.Touch(patch, v.Object("body"), optionalText(t, v, "value"))
		return map[string]any{"patch": patch}, nil
	})
}

func TestVectorsProgressClear(t *testing.T) {
	vectors.Play(t, "progress_clear", normalizedTime, func(t *testing.T, v vectors.Fields) (any, error) {
		vectors.Known(t, v, "storage", "essence")
		storage, err := progresstest.Storage(t, v["storage"])
		if err != nil {
			return nil, err
		}
		return map[string]any{"essence": storage.Clear(v.Object("essence"))}, nil
	})
}

func TestVectorsTimestamps(t *testing.T) {
	vectors.Play(t, "timestamps", normalizedTime, func(t *testing.T, v vectors.Fields) (any, error) {
		vectors.Known(t, v, "op", "value", "seconds")
		switch v["op"] {
		case "epoch":
			moment := time.UnixMicro(v["value"].(int64)).UTC()
			return map[string]any{
				"record": progress.FormatTimestamp(moment), "touch": progress.FormatTouch(moment),
			}, nil
		case "format":
			return formatShifted(optionalText(t, v, "value"), 0)
		case "add":
			seconds, err := toSeconds(v["seconds"])
			if err != nil {
				return nil, err
			}
			return formatShifted(optionalText(t, v, "value"), seconds)
		case "parse":
			return parseOptional(optionalText(t, v, "value"))
		}
		t.Fatalf("unknown operation %v: the harness must learn it", v["op"])
		return nil, nil
	})
}

// optionalText returns a string of the input, or nil for a null.
func optionalText(t *testing.T, input vectors.Fields, key string) *string {
	t.Helper()
	switch value := input[key].(type) {
	case nil:
		return nil
	case string:
		return &value
	default:
		t.Fatalf("%s is neither a string nor null: %v", key, value)
		return nil
	}
}

// toSeconds returns a number of seconds as a duration, rounded to microseconds as in Python.
func toSeconds(value any) (time.Duration, error) {
	switch value := value.(type) {
	case int64:
		return time.Duration(value) * time.Second, nil
	case float64:
		return time.Duration(math.RoundToEven(value*1e6)) * time.Microsecond, nil
	}
	return 0, fmt.Errorf("%v is not a number of seconds", value)
}

func formatShifted(text *string, later time.Duration) (any, error) {
	if text == nil {
		return map[string]any{"text": progress.Record{}.JSONFields()["started"]}, nil
	}
	moment, err := progress.ParseTimestamp(*text)
	return map[string]any{"text": progress.FormatTimestamp(moment.Add(later))}, err
}

// parseOptional returns the parsed time, or the absent time of a record for a nil text. Go does not have naive times.
func parseOptional(text *string) (any, error) {
	if text == nil {
		record, err := progress.DecodeRecord(map[string]any{"started": nil})
		return map[string]any{"utc": record.JSONFields()["started"], "naive": nil}, err
	}
	moment, err := progress.ParseTimestamp(*text)
	return map[string]any{"utc": progress.FormatTimestamp(moment.UTC()), "naive": false}, err
}

// normalizedTime returns the times of records in the form of records, because the vectors are about times, not about
// their texts.
func normalizedTime(key string, value any) any {
	if text, ok := value.(string); ok && slices.Contains([]string{"started", "stopped", "delayed"}, key) {
		if moment, err := progress.ParseTimestamp(text); err == nil {
			return progress.FormatTimestamp(moment.UTC())
		}
	}
	return value
}
