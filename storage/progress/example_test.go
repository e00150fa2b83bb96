package progress_test

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// Example stores the record of a failed attempt, reads it after a restart, and removes it at the end.
func Example() {
	storage := progress.Annotations{Prefix: "databases.example.org"}
	started := time.Date(2024, 5, 6, 7, 8, 9, 123_456_000, time.UTC)
	record := progress.Record{
		Started: &started, Delayed: ptr.To(
			started.Add(10 * time.Second),
		), Purpose: ptr.To("create"), Retries: ptr.To(int64(1)),
		Success: ptr.To(false), Failure: ptr.To(false), Message: ptr.To("later"),
	}
	patch := map[string]any{}
	if err := storage.Store(patch, map[string]any{}, "provision", record); err != nil {
		fmt.Println(err)
	}
	stored := patch["metadata"].(map[string]any)["annotations"].(map[string]any)["databases.example.org/provision"]
	fmt.Println(strings.ReplaceAll(fmt.Sprint(stored), ",", ",\n"))

	restored, err := storage.Fetch(patch, "provision")
	fmt.Println(*restored.Retries, *restored.Message, restored.Equal(record), err)

	removal := map[string]any{}
	storage.Purge(removal, patch, "provision")
	fmt.Println(removal)
	// Output:
	// {"started":"2024-05-06T07:08:09.123456+00:00",
	// "delayed":"2024-05-06T07:08:19.123456+00:00",
	// "purpose":"create",
	// "retries":1,
	// "success":false,
	// "failure":false,
	// "message":"later"}
	// 1 later true <nil>
	// map[metadata:map[annotations:map[databases.example.org/provision:<nil>]]]
}
