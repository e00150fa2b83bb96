package patching

import (
	"context"
	"encoding/json"
	"fmt"

	"gomodules.xyz/jsonpatch/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// An exchange is the requests of one Apply.
type exchange struct {
	writer    *Writer
	target    Target
	current   map[string]any // the server's last answer, or what the handlers saw
	remaining Patch          // what a conflict would leave to do
	result    Result
}

type request struct {
	status  bool
	kind    types.PatchType
	payload any
}

func (r request) doing() string {
	if r.status {
		return "patching the status of"
	}
	return "patching"
}

// write sends a request of either kind. If it is not to go on, that is either for the error, or the object is gone.
func (x *exchange) write(ctx context.Context, r request) (proceed bool, err error) {
	err = x.send(ctx, r)
	switch {
	case err == nil:
		return true, nil
	case apierrors.IsNotFound(err) && r.status:
		return x.missingStatus(ctx, err)
	case apierrors.IsNotFound(err):
		x.result.Gone = true
		return false, nil
	case r.status && lasting(err):
		x.result.StatusRefused = err
		return true, nil
	default:
		return false, err
	}
}

func (x *exchange) send(ctx context.Context, r request) error {
	data, err := json.Marshal(r.payload)
	if err != nil {
		return fmt.Errorf("encoding the patch of %s: %w", describe(x.target.Body), err)
	}
	seen := unstructured.Unstructured{Object: x.target.Body}
	shell := &unstructured.Unstructured{}
	shell.SetGroupVersionKind(seen.GroupVersionKind())
	shell.SetNamespace(seen.GetNamespace())
	shell.SetName(seen.GetName())

	x.result.Requests++
	patch := client.RawPatch(r.kind, data)
	if r.status {
		err = x.writer.Client.Status().Patch(ctx, shell, patch, x.writer.statusOptions()...)
	} else {
		err = x.writer.Client.Patch(ctx, shell, patch, x.writer.mainOptions()...)
	}
	if err != nil {
		return failure(err, r, describe(x.target.Body))
	}
	x.current, x.result.Body = shell.Object, shell.Object
	return nil
}

// missingStatus finds out what a 404 of /status means: no such object, or no such subresource.
func (x *exchange) missingStatus(ctx context.Context, missing error) (proceed bool, err error) {
	live, err := x.writer.reread(ctx, x.target.Body)
	switch {
	case apierrors.IsNotFound(err):
		x.result.Gone = true
		return false, nil
	case err != nil:
		return false, err
	case !sameObject(x.target.Body, live):
		return false, fmt.Errorf("patching the status of %s: %w: %w", describe(x.target.Body), ErrReplaced, missing)
	default:
		x.result.StatusRefused = fmt.Errorf(
			"%w: the object exists, but has no /status subresource: %w", ErrRefused, missing,
		)
		return true, nil
	}
}

// merge sends a merge-patch, with the guards that are asked for.
func (x *exchange) merge(
	ctx context.Context, status bool, payload map[string]any, byVersion bool,
) (proceed bool, err error) {
	guards := map[string]any{}
	if uid := UIDOf(x.target.Body); x.writer.Guarded && !status && uid != "" {
		guards["uid"] = uid
	}
	if byVersion {
		version, err := x.version()
		if err != nil {
			return false, err
		}
		guards["resourceVersion"] = version
	}
	proceed, err = x.write(
		ctx, request{status: status, kind: types.MergePatchType, payload: withMetadata(payload, guards)},
	)
	if proceed && (!status || x.result.StatusRefused == nil) {
		x.result.Dropped = append(x.result.Dropped, dropped(payload, x.current)...)
	}
	return proceed, err
}

// operate sends a JSON-patch of operations that were made from the current body.
func (x *exchange) operate(ctx context.Context, status bool, ops []jsonpatch.Operation) (proceed bool, err error) {
	version, err := x.version()
	if err != nil {
		return false, err
	}
	return x.write(ctx, request{status: status, kind: types.JSONPatchType, payload: testingVersion(version, ops)})
}

func (x *exchange) version() (string, error) {
	version := VersionOf(x.current)
	if version == "" {
		return "", fmt.Errorf("patching %s: the body has no resource version to guard with", describe(x.target.Body))
	}
	return version, nil
}
