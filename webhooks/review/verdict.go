package review

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
)

// buildResponse returns the response to the review. As in Kopf, it contains the patch even if the request is denied.
func (r *activeReview) buildResponse(ctx context.Context) (Response, error) {
	admission := r.request.admission
	out := Response{APIVersion: r.request.apiVersion, Kind: reviewKind, Response: ObjectVerdict{
		UID: r.request.uid, Allowed: true, Warnings: admission.Warnings(),
	}}
	if denied := r.foremostDenial(); denied != nil {
		out.Response.Allowed, out.Response.Status = false, &denied.status
	}
	// The object is only decoded if there is a patch.
	patch := patching.Patch{Merge: admission.MergePatch(), Transforms: r.rememberedChanges()}
	if patch.IsEmpty() {
		return out, nil
	}
	if err := checkStillAwaited(ctx); err != nil {
		return out, err
	}
	body, err := admission.ReviewedObject().Value()
	if err != nil {
		return out, err
	}
	operations, err := patching.AdmissionOps(body, patch)
	if err != nil || len(operations) == 0 {
		return out, err
	}
	if err := checkStillAwaited(ctx); err != nil {
		return out, err
	}
	if out.Response.Patch, err = json.Marshal(operations); err != nil {
		return out, fmt.Errorf("encoding the patch: %w", err)
	}
	out.Response.PatchType = "JSONPatch"
	return out, nil
}

// denial is a handler's error as the user sees it.
type denial struct {
	rank   int // the lowest rank is reported
	status Status
}

// foremostDenial returns the denial to report, or nil. The API only has room for one. As in Kopf, an error that is
// meant for the user goes first, then a permanent one, then a temporary one, then all others. Within a rank, the first
// one counts.
func (r *activeReview) foremostDenial() (told *denial) {
	for _, a := range r.attempts {
		// A strict comparison keeps the first denial of a rank.
		if one := denialOf(a); one != nil && (told == nil || one.rank < told.rank) {
			told = one
		}
	}
	return told
}

// denialOf returns the denial of a handler, or nil if the handler allows the request.
func denialOf(a *execution.Attempt) (out *denial) {
	err := a.Outcome.Err
	if err == nil {
		return nil
	}
	out = &denial{rankOrdinary, Status{Message: err.Error(), Code: http.StatusInternalServerError}}
	// An empty message would leave the user without any reason.
	if out.status.Message == "" {
		out.status.Message = fmt.Sprintf("handler %q gives no reason", a.Call.Handler.ID)
	}
	// Only an error for the user can choose the status. As in Kopf, a code of zero means 500.
	switch by := a.Outcome.Denial; {
	case by.Status != nil:
		out.rank, out.status.Code = rankMeantForUser, cmp.Or(by.Status.Code, out.status.Code)
		out.status.Reason, out.status.Details = by.Status.Reason, by.Status.Details
	case by.Permanent:
		out.rank = rankPermanent
	case by.Temporary:
		out.rank = rankTemporary
	}
	return out
}

// The ranks of errors, by priority.
const (
	rankMeantForUser = iota
	rankPermanent
	rankTemporary
	rankOrdinary
)
