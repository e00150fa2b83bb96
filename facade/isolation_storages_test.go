package facade_test

import (
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// vandalised are storages of the user's own.
type vandalised struct {
	*vandal
	diffbase.Annotations
}

func (s vandalised) Build(body map[string]any, extra []diff.Path) (diffbase.Essence, error) {
	essence, err := s.Annotations.Build(body, extra)
	built := copyOf(essence)
	s.rages(body, extra)
	return built, err
}

func (s vandalised) Fetch(body map[string]any) (diffbase.Essence, error) {
	essence, err := s.Annotations.Fetch(body)
	s.rages(body)
	return essence, err
}

func (s vandalised) Store(patch, body map[string]any, essence diffbase.Essence) error {
	err := s.Annotations.Store(patch, body, essence)
	s.rages(body, essence)
	return err
}

type vandalisedProgress struct {
	*vandal
	progress.Annotations
}

func (s vandalisedProgress) Fetch(body map[string]any, id string) (*progress.Record, error) {
	record, err := s.Annotations.Fetch(body, id)
	s.rages(body)
	return record, err
}

func (s vandalisedProgress) Clear(essence map[string]any) map[string]any {
	cleared := copyOf(s.Annotations.Clear(essence))
	s.rages(essence)
	return cleared
}

func (s vandalisedProgress) Store(patch, body map[string]any, id string, record progress.Record) error {
	err := s.Annotations.Store(patch, body, id, record)
	s.rages(body, record)
	return err
}

func (s vandalisedProgress) Purge(patch, body map[string]any, id string) {
	s.Annotations.Purge(patch, body, id)
	s.rages(body)
}

func copyOf(tree map[string]any) map[string]any {
	own, _ := diff.Copy(tree).(map[string]any)
	return own
}
