package facade

import (
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// Reason is why an object is handled. Kopf: Reason.
type Reason = cause.Reason

// The reasons that have handlers.
const (
	// ReasonCreate: the object was never handled to the end. Kopf: Reason.CREATE.
	ReasonCreate = cause.Create
	// ReasonUpdate: the object differs from what was handled last, whenever that was. Kopf: Reason.UPDATE.
	ReasonUpdate = cause.Update
	// ReasonDelete: the object is being deleted, and the operator's finalizer holds it. Kopf: Reason.DELETE.
	ReasonDelete = cause.Delete
	// ReasonResume: nothing changed while the operator was not running. Kopf: Reason.RESUME.
	ReasonResume = cause.Resume
)

// ErrorsMode says what an ordinary error of a handler means: one that is neither [Temporary] nor [Permanent].
// Kopf: ErrorsMode.
type ErrorsMode = handlers.ErrorsMode

// The modes of errors, for [Errors].
const (
	// ErrorsTemporary tries the handler again after the backoff; the default. Kopf: ErrorsMode.TEMPORARY.
	ErrorsTemporary = handlers.ErrorsTemporary
	// ErrorsPermanent fails the handler for good. Kopf: ErrorsMode.PERMANENT.
	ErrorsPermanent = handlers.ErrorsPermanent
	// ErrorsIgnored takes the error for a success without a result. Kopf: ErrorsMode.IGNORED.
	ErrorsIgnored = handlers.ErrorsIgnored
)
