package changes

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reread gets the object live if the answer to our last write was lost: what we have may be older than what we did.
func (p *pass) reread(ctx context.Context) (verdict, error) {
	if !p.memory.uncertain {
		return goOn, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.writeTimeout())
	defer cancel()
	body, err := p.get(ctx, p.body)
	switch {
	case apierrors.IsNotFound(err), err == nil && uidOf(body) != uidOf(p.body):
		p.gone = true
		return stop, nil
	case err != nil:
		return stop, err
	}
	p.memory.uncertain = false
	p.proceed(body, false)
	return goOn, nil
}

func (p *pass) get(ctx context.Context, body map[string]any) (map[string]any, error) {
	object := &unstructured.Unstructured{Object: body}
	return p.Writer.Get(ctx, object.GroupVersionKind(), client.ObjectKeyFromObject(object))
}

// uncertain tells whether the write may have been done in spite of the error: the server did not say that it refuses.
func uncertain(err error) bool {
	var status apierrors.APIStatus
	if err == nil || atFault(err) {
		return false
	}
	if !errors.As(err, &status) {
		return true
	}
	code := status.Status().Code
	return code < 400 || code >= 500 || code == http.StatusRequestTimeout
}

// newest is the later of two versions of the object: after a conflict there may be nothing left to write.
func newest(read, answered map[string]any) map[string]any {
	if read == nil || answered == nil {
		if read == nil {
			return answered
		}
		return read
	}
	order, err := resourceversion.CompareResourceVersion(versionOf(read), versionOf(answered))
	if err == nil && order > 0 {
		return read
	}
	return answered
}

func versionOf(body map[string]any) string {
	return (&unstructured.Unstructured{Object: body}).GetResourceVersion()
}
