package kopf

import (
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/internal/conditions"
)

// Conditions maintains the conditions Ready, Reconciling and Stalled, and status.observedGeneration, of the selected
// objects from the outcomes of their handlers of changes, so that kubectl wait --for=condition=Ready works. Kopf: none.
//
// The kind needs the status subresource with a list of metav1.Condition. Otherwise one line is logged, and nothing is
// written. See docs/conditions.md.
func (s Selection[T]) Conditions() {
	if s.kind == nil {
		s.kind.AddError(errors.New("Conditions: the selection is empty: make it with kopf.For or kopf.ForResource"))
		return
	}
	if s.kind.Find == nil {
		return // the error is already recorded
	}
	h := registry.NewReporter(registry.CallerLocation(), s.filters)
	s.kind.Registry.RegisterHandler(registry.HandlerEntry{Kind: s.kind, Verb: "Conditions", Handler: h})
}

// errNoStatus is the error for kinds without the status subresource. There, each change of a condition would be a
// change of the main resource, with a new generation.
var errNoStatus = errors.New(`the status of the kind is not a subresource: add "subresources: {status: {}}" to its CRD`)

// Condition sets one of status.conditions, as [Change.Patch] does. It also works without [Selection.Conditions]. Kopf:
// none.
//
//	c.Condition("DatabaseReady", metav1.ConditionTrue, "Provisioned", "the server answers")
//
// Invalid arguments, types reserved by Selection.Conditions, and kinds without the status subresource fail the handler
// permanently. See docs/conditions.md.
func (c *Change[T]) Condition(conditionType string, status metav1.ConditionStatus, reason, message string) {
	c.runLocked(func() error {
		if c.call.Writer == nil {
			return errReadOnly
		}
		wanted := conditions.Condition{Type: conditionType, Status: string(status), Reason: reason, Message: message}
		if err := c.setCondition(wanted); err != nil {
			return fmt.Errorf("setting a condition of object %s by handler %q: %w", c.objectName(), c.ID, err)
		}
		return nil
	})
}

// setCondition sets the condition in the object of the cluster and in c.Object.
func (c *Change[T]) setCondition(wanted conditions.Condition) error {
	if err := c.checkCondition(wanted); err != nil {
		return Permanent(err)
	}
	// The condition is about the generation that the handler has seen. A background function sees the newest one.
	body, now := c.call.Cause.Body(), time.Now()
	if c.call.LiveObject != nil {
		body = c.newestBody()
	}
	wanted.Generation = conditions.GenerationOf(body)
	// The function runs again on the fresh object after a conflict, so it uses one time.
	set := func(body map[string]any) error {
		if err := conditions.SetCondition(body, wanted, now); err != nil {
			return Permanent(err)
		}
		return nil
	}
	if err := c.call.Writer.AddTransform(set); err != nil {
		return err
	}
	// r.Object of a background function stays as it is.
	if c.call.LiveObject != nil {
		return nil
	}
	// Show the condition in c.Object, without taking this change for one without Patch.
	c.original.DetectChanges()
	object, err := c.call.WorkingCopy()
	if err != nil {
		return err
	}
	changed, err := c.codec.Decode(object)
	if err != nil {
		return err
	}
	c.codec.ReplaceContent(c.Object, changed)
	c.original.RecordContent()
	return nil
}

// checkCondition returns an error for an invalid condition.
func (c *Change[T]) checkCondition(wanted conditions.Condition) error {
	if err := wanted.CheckFields(); err != nil {
		return err
	}
	if slices.Contains(c.call.Handler.ReservedConditions, wanted.Type) {
		return fmt.Errorf("type %q: it reports on the handlers, as the objects have Conditions: choose another "+
			"type, or set Settings.ConditionsDomain", wanted.Type)
	}
	if c.call.Resource != nil && !c.call.Resource.HasStatus() {
		return errNoStatus
	}
	return nil
}
