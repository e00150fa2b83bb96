package patching

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// An exchange has the requests of one Apply and their results so far.
type exchange struct {
	writer      *PatchWriter
	target      Target
	currentBody map[string]any // the server's last answer, or the target's body
	remaining   Patch          // the part that is still to be written after a conflict
	result      WriteResult
}

// A request is one merge-patch of /status or of the main resource.
type request struct {
	isStatus bool
	payload  map[string]any
}

// applyPatch sends at most two merge-patches: one to /status, if the resource has it, and one to the main resource.
func (x *exchange) applyPatch(ctx context.Context, p Patch) error {
	// Base is the merge-patch to fold, and rest is the part that remains after the status was written. As in Kopf, a
	// null for the whole status is not sent.
	base, rest := p.Merge, p.Merge
	if x.target.StatusSubresource {
		var status any
		if status, _, rest = splitMerge(p.Merge); status == nil {
			base = rest
		}
	}
	// Transformations become part of the merge-patch, so no separate request is needed for them.
	full, err := foldTransforms(x.target.Body, base, p.Transforms)
	if err != nil {
		return fmt.Errorf("patching %s: %w", describeObject(x.target.Body), err)
	}
	status, present, main := any(nil), false, full
	if x.target.StatusSubresource {
		status, present, main = splitMerge(full)
	}
	if present {
		proceed, err := x.sendStatus(ctx, status, releasesFinalizers(x.target.Body, main))
		if !proceed {
			return err
		}
	}
	// From here on, a conflict concerns the main resource only.
	x.remaining.Merge = rest
	if len(main) == 0 {
		return nil
	}
	// The new list was computed from the present one, so a patch of a list is valid only for this version of the
	// object.
	_, err = x.sendMerge(ctx, false, main, touchesList(x.target.Body, main))
	return err
}

// sendStatus sends the status. If the main resource is going to lose finalizers, a failure of the status must not
// prevent that. Then the status gets half of the remaining time, and its failure is only reported. After a conflict,
// both are sent again.
func (x *exchange) sendStatus(ctx context.Context, status any, releasing bool) (proceed bool, err error) {
	payload := map[string]any{"status": status}
	if !releasing {
		return x.sendMerge(ctx, true, payload, true)
	}
	limited, cancel := withHalfTimeout(ctx)
	defer cancel()
	proceed, err = x.sendMerge(limited, true, payload, true)
	switch {
	// A conflict or a replacement concerns the main resource as well, so it is not written either.
	case err == nil, errors.Is(err, ErrConflict), errors.Is(err, ErrReplaced):
		return proceed, err
	case x.target.StopIfStatusRefused && IsContentRefused(err):
		return false, err
	}
	x.result.StatusRefusal = err
	return true, nil
}

// withHalfTimeout limits the context to half of its remaining time.
func withHalfTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, limited := ctx.Deadline()
	if !limited {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)/2)
}

// foldTransforms returns one merge-patch with the effect of the merge-patch and then of the transformations on the
// body.
func foldTransforms(body, merge map[string]any, transforms []Transform) (map[string]any, error) {
	if len(transforms) == 0 {
		return merge, nil
	}
	merged := body
	if len(merge) > 0 {
		merged = applyMerge(body, merge)
	}
	after, err := applyTransforms(merged, transforms)
	if err != nil {
		return nil, err
	}
	return composeMerges(body, merge, MergeDiff(merged, after)), nil
}

// sendMerge sends one merge-patch with its guards: the uid for the main resource, as /status ignores it, and the
// resource version if byVersion is true.
func (x *exchange) sendMerge(
	ctx context.Context, status bool, payload map[string]any, byVersion bool,
) (proceed bool, err error) {
	guards := map[string]any{}
	if uid := ObjectUID(x.target.Body); !status && uid != "" {
		guards["uid"] = uid
	}
	if byVersion {
		version, err := x.guardVersion()
		if err != nil {
			return false, err
		}
		guards["resourceVersion"] = version
	}
	before := x.currentBody
	guarded := payload
	if len(guards) > 0 {
		guarded = applyMerge(payload, map[string]any{"metadata": guards})
	}
	proceed, err = x.sendTolerantly(ctx, request{isStatus: status, payload: guarded})
	// A refused status was not written, so the answer says nothing about its fields.
	if proceed && (!status || x.result.StatusRefusal == nil) {
		x.result.RestoredFields = append(x.result.RestoredFields, restoredFields(payload, before, x.currentBody)...)
		x.result.DroppedFields = append(x.result.DroppedFields, droppedFields(payload, x.currentBody)...)
	}
	return proceed, err
}

// guardVersion returns the version of the newest known state. A body without one cannot be guarded, which is an error
// of the caller.
func (x *exchange) guardVersion() (string, error) {
	version := ResourceVersion(x.currentBody)
	if version == "" {
		return "", fmt.Errorf("patching %s: the body has no resource version to guard with",
			describeObject(x.target.Body))
	}
	return version, nil
}

// sendTolerantly sends a request and interprets its failure. If it returns false, the exchange ends, with an error or
// because the object does not exist any more.
func (x *exchange) sendTolerantly(ctx context.Context, r request) (proceed bool, err error) {
	err = x.sendRequest(ctx, r)
	switch {
	case err == nil:
		return true, nil
	case apierrors.IsNotFound(err) && r.isStatus:
		return x.checkMissingStatus(ctx, err)
	case apierrors.IsNotFound(err):
		x.result.Gone = true
		return false, nil
	// A refused status does not prevent the write of the main resource, unless the target demands it.
	case r.isStatus && isLasting(err):
		x.result.StatusRefusal = err
		if x.target.StopIfStatusRefused && IsContentRefused(err) {
			return false, err
		}
		return true, nil
	default:
		return false, err
	}
}

// sendRequest sends a request, and stores the answer as the current state of the object.
func (x *exchange) sendRequest(ctx context.Context, r request) error {
	data, err := json.Marshal(r.payload)
	if err != nil {
		return fmt.Errorf("encoding the patch of %s: %w", describeObject(x.target.Body), err)
	}
	seen := unstructured.Unstructured{Object: x.target.Body}
	asked := RawPatch{
		Type: types.MergePatchType, Data: data, Status: r.isStatus, FieldManager: x.writer.FieldManager,
	}
	var answer *jsontext.LazyObject
	err = x.writer.Client.Patch(ctx, client.ObjectKeyFromObject(&seen), asked, func(text []byte) error {
		// The text is valid only during this call.
		opened, body, err := decodeAnswer(text)
		if err == nil {
			err = confirmAnswer(body, seen.GetKind(), ObjectUID(x.target.Body))
		}
		if err == nil {
			x.currentBody, answer = body, opened
		}
		return err
	})
	if err != nil {
		return wrapFailure(err, r, describeObject(x.target.Body))
	}
	x.result.Body, x.result.Answer = x.currentBody, answer
	x.result.Versions = append(x.result.Versions, ResourceVersion(x.currentBody))
	return nil
}

// decodeAnswer returns the object of an answer without its managed fields, which are a large part of it and are not
// used.
func decodeAnswer(text []byte) (*jsontext.LazyObject, map[string]any, error) {
	opened, err := compact.OpenTrimmed(text)
	if err != nil {
		return nil, nil, err
	}
	body, err := opened.Value()
	return opened, body, err
}

// confirmAnswer returns an error unless the answer is an object with this kind and uid. An empty kind or uid is not
// compared. If another object is returned, the outcome of the write is unknown: a proxy may have answered, or the
// answer may belong to another request.
func confirmAnswer(answer map[string]any, kind, uid string) error {
	shown, _ := answer["kind"].(string)
	switch held := ObjectUID(answer); {
	case shown == "" || kind != "" && shown != kind:
		return fmt.Errorf("the answer shows an object of kind %q, not %q: is there a proxy on the way?", shown, kind)
	case uid != "" && held != uid:
		return fmt.Errorf("the answer shows an object with uid %q, not %q: is there a proxy on the way?", held, uid)
	}
	return nil
}

// describeAction describes the request in errors.
func (r request) describeAction() string {
	if r.isStatus {
		return "patching the status of"
	}
	return "patching"
}

// checkMissingStatus reads the object after a 404 of /status, to distinguish an object that does not exist from a
// resource without the subresource.
func (x *exchange) checkMissingStatus(ctx context.Context, missing error) (proceed bool, err error) {
	live, err := x.writer.readAgain(ctx, x.target.Body)
	switch {
	case apierrors.IsNotFound(err):
		x.result.Gone = true
		return false, nil
	case err != nil:
		return false, err
	case !sameObject(x.target.Body, live):
		return false, fmt.Errorf("patching the status of %s: %w: %w", describeObject(x.target.Body), ErrReplaced,
			missing)
	default:
		x.result.StatusRefusal = fmt.Errorf(
			"%w: the object exists, but has no /status subresource: %w", ErrRefused, missing,
		)
		return true, nil
	}
}

// droppedFields returns the fields of a merge-patch that are missing in the answer: the API server silently drops
// fields that the schema of a CRD does not have. The metadata is ignored, as the server manages it.
func droppedFields(payload, answer map[string]any) []diff.Path {
	var lost []diff.Path
	for _, key := range slices.Sorted(maps.Keys(payload)) {
		if key != "metadata" {
			lost = appendMissing(lost, diff.Path{key}, payload[key], answer)
		}
	}
	return lost
}

// restoredFields returns the fields that a merge-patch removes, and that have the same value as before in the answer,
// because a default of the schema restored them. The metadata is ignored.
func restoredFields(payload, before, answer map[string]any) (paths []diff.Path) {
	for _, key := range slices.Sorted(maps.Keys(payload)) {
		value, then, now := payload[key], before[key], answer[key]
		inner, mapping := value.(map[string]any)
		switch {
		case key == "metadata":
		case value == nil && then != nil && diff.Equal(then, now):
			paths = append(paths, diff.Path{key})
		case mapping:
			former, _ := then.(map[string]any)
			present, _ := now.(map[string]any)
			for _, path := range restoredFields(inner, former, present) {
				paths = append(paths, append(diff.Path{key}, path...))
			}
		}
	}
	return paths
}

// appendMissing appends the paths of set values that the answer does not have. For an absent mapping, it appends only
// the path of the mapping.
//
// The path is copied only for the result. So a deeply nested patch costs no more than the number of its keys.
func appendMissing(lost []diff.Path, at diff.Path, wanted any, within map[string]any) []diff.Path {
	held, present := within[at[len(at)-1]]
	inner, mapping := wanted.(map[string]any)
	switch {
	case wanted == nil || !present && mapping && setsNoValues(inner):
		return lost
	case !present:
		return append(lost, slices.Clone(at))
	case !mapping:
		return lost
	}
	into, _ := held.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(inner)) {
		lost = appendMissing(lost, append(at, key), inner[key], into)
	}
	return lost
}

// setsNoValues reports whether a merge-patch sets no values: it has only nulls, and mappings without values. Such a
// mapping is not lost if the answer does not have it.
func setsNoValues(payload map[string]any) bool {
	for _, value := range payload {
		inner, mapping := value.(map[string]any)
		if value != nil && !(mapping && setsNoValues(inner)) {
			return false
		}
	}
	return true
}
