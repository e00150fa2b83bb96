package progress_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

func TestVectorsProgressFetch(t *testing.T) {
	runVectors(t, "progress_fetch", func(v vector) (any, error) {
		v.require("storage", "key", "body")
		storage, err := v.storage()
		if err != nil {
			return nil, err
		}
		record, err := storage.Fetch(v.object("body"), *v.text("key"))
		if err != nil || record == nil {
			return map[string]any{"record": nil}, err
		}
		return map[string]any{"record": record.Fields()}, nil
	})
}

func TestVectorsProgressStore(t *testing.T) {
	runVectors(t, "progress_store", func(v vector) (any, error) {
		v.require("storage", "key", "body", "patch", "record")
		storage, err := v.storage()
		if err != nil {
			return nil, err
		}
		record, err := progress.DecodeRecord(v.object("record"))
		if err != nil {
			return nil, err
		}
		patch := v.object("patch")
		err = storage.Store(patch, v.object("body"), *v.text("key"), record)
		return map[string]any{"patch": patch}, err
	})
}

func TestVectorsProgressPurge(t *testing.T) {
	runVectors(t, "progress_purge", func(v vector) (any, error) {
		v.require("storage", "key", "body", "patch")
		storage, err := v.storage()
		if err != nil {
			return nil, err
		}
		patch := v.object("patch")
		storage.Purge(patch, v.object("body"), *v.text("key"))
		return map[string]any{"patch": patch}, nil
	})
}

func TestVectorsProgressTouch(t *testing.T) {
	runVectors(t, "progress_touch", func(v vector) (any, error) {
		v.require("storage", "body", "patch", "value")
		storage, err := v.storage()
		if err != nil {
			return nil, err
		}
		patch := v.object("patch")
		storage.Touch(patch, v.object("body"), v.text("value"))
		return map[string]any{"patch": patch}, nil
	})
}

func TestVectorsProgressClear(t *testing.T) {
	runVectors(t, "progress_clear", func(v vector) (any, error) {
		v.require("storage", "essence")
		storage, err := v.storage()
		if err != nil {
			return nil, err
		}
		return map[string]any{"essence": storage.Clear(v.object("essence"))}, nil
	})
}

func TestVectorsTimestamps(t *testing.T) {
	runVectors(t, "timestamps", func(v vector) (any, error) {
		v.require("op", "value", "seconds")
		switch v.input["op"] {
		case "epoch":
			moment := time.UnixMicro(v.input["value"].(int64)).UTC()
			return map[string]any{
				"record": progress.FormatTimestamp(moment), "touch": progress.FormatTouch(moment),
			}, nil
		case "format":
			return formatted(v.text("value"), 0)
		case "add":
			seconds, err := toSeconds(v.input["seconds"])
			if err != nil {
				return nil, err
			}
			return formatted(v.text("value"), seconds)
		case "parse":
			return parsed(v.text("value"))
		}
		v.t.Fatalf("unknown operation %v: the harness must learn it", v.input["op"])
		return nil, nil
	})
}

// toSeconds reads a duration of so many seconds, to the microsecond, as Python does.
func toSeconds(value any) (time.Duration, error) {
	switch value := value.(type) {
	case int64:
		return time.Duration(value) * time.Second, nil
	case float64:
		return time.Duration(math.RoundToEven(value*1e6)) * time.Microsecond, nil
	}
	return 0, fmt.Errorf("%v are no seconds", value)
}

func formatted(text *string, later time.Duration) (any, error) {
	if text == nil {
		return map[string]any{"text": progress.Record{}.Fields()["started"]}, nil
	}
	moment, err := progress.ParseTimestamp(*text)
	return map[string]any{"text": progress.FormatTimestamp(moment.Add(later))}, err
}

// parsed has no naive times: there are none in Go. Absent ones are those of a record.
func parsed(text *string) (any, error) {
	if text == nil {
		record, err := progress.DecodeRecord(map[string]any{"started": nil})
		return map[string]any{"utc": record.Fields()["started"], "naive": nil}, err
	}
	moment, err := progress.ParseTimestamp(*text)
	return map[string]any{"utc": progress.FormatTimestamp(moment.UTC()), "naive": false}, err
}
