package review

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

// response is what the handlers have said.
func (r *reviewing) response(ctx context.Context) (Response, error) {
	admission := r.request.admission
	out := Response{APIVersion: r.request.apiVersion, Kind: kind, Response: Verdict{
		UID: r.request.uid, Allowed: true, Warnings: admission.Warnings(),
	}}
	if denied := r.foremost(); denied != nil {
		out.Response.Allowed, out.Response.Status = false, &denied.status
	}
	patch := patching.Patch{Merge: admission.Merged(), Transforms: r.remembered()}
	if patch.Empty() {
		return out, nil
	}
	if err := awaited(ctx); err != nil {
		return out, err
	}
	body, err := admission.Body().Value()
	if err != nil {
		return out, err
	}
	operations, err := patching.AdmissionOps(body, patch)
	if err != nil || len(operations) == 0 {
		return out, err
	}
	if err := awaited(ctx); err != nil {
		return out, err
	}
	if out.Response.Patch, err = json.Marshal(operations); err != nil {
		return out, fmt.Errorf("encoding the patch: %w", err)
	}
	out.Response.PatchType = "JSONPatch"
	return out, nil
}

// denial is what a handler's error means to the user.
type denial struct {
	rank   int // the lowest one is told
	status Status
}

// foremost is the denial that is told; nil if there is none. An error that is meant for the user goes before one that
// is permanent, that before a temporary one, and all of these before others; of several, it is the first.
func (r *reviewing) foremost() (told *denial) {
	for _, a := range r.attempts {
		if one := denialBy(a); one != nil && (told == nil || one.rank < told.rank) {
			told = one
		}
	}
	return told
}

// denialBy is nil if the handler does not deny the request.
func denialBy(a *execution.Attempt) (out *denial) {
	err := a.Outcome.Err
	if err == nil {
		return nil
	}
	out = &denial{ordinary, Status{Message: err.Error(), Code: http.StatusInternalServerError}}
	if out.status.Message == "" {
		out.status.Message = fmt.Sprintf("handler %q gives no reason", a.Call.Handler.ID)
	}
	switch by := a.Outcome.Denial; {
	case by.Status != nil:
		out.rank, out.status.Code = meant, cmp.Or(by.Status.Code, out.status.Code)
		out.status.Reason, out.status.Details = by.Status.Reason, by.Status.Details
	case by.Permanent:
		out.rank = permanent
	case by.Temporary:
		out.rank = temporary
	}
	return out
}

// The ranks of errors.
const (
	meant = iota
	permanent
	temporary
	ordinary
)
