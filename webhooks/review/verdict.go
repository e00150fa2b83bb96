package review

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
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

// denialBy is nil if the handler does not deny the request. The error's methods may be users' code.
func denialBy(a *execution.Attempt) (out *denial) {
	err := a.Outcome.Err
	if err == nil {
		return nil
	}
	out = &denial{ordinary, Status{Message: err.Error(), Code: http.StatusInternalServerError}}
	if out.status.Message == "" {
		out.status.Message = fmt.Sprintf("handler %q gives no reason", a.Call.Handler.ID)
	}
	if failed := panics.Contain(func() error { out.classify(err); return nil }); failed != nil {
		out.status.Message = failed.Error()
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

// classify finds the rank of an error, and, if it is one of the API's kind, its code and what else that says.
func (d *denial) classify(err error) {
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		status := known.Status()
		d.rank, d.status.Code = meant, cmp.Or(status.Code, d.status.Code)
		d.status.Reason, d.status.Details = status.Reason, status.Details
		return
	}
	if execution.IsPermanent(err) {
		d.rank = permanent
	} else if _, asks := execution.RetryAfter(err); asks {
		d.rank = temporary
	}
}
