package clusterops

import (
	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// IsRecord reports whether the value of an annotation is a handler's record. Every record has the time of its start.
func IsRecord(value any) bool {
	object, err := storage.ParseObject(value)
	if err != nil || object == nil {
		return false
	}
	record, err := progress.DecodeRecord(object)
	return err == nil && record.Started != nil
}
