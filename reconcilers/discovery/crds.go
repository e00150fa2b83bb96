package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/resync"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
)

const (
	crdsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	// crdsAccept leaves the schemas out, which may be large. Servers that cannot do so send them.
	crdsAccept = "application/json;as=%s;g=meta.k8s.io;v=v1,application/json"
	// crdsQuiet is the time without changes that resets the delay before a resync. The delay lets the API server's
	// discovery documents catch up, and merges changes; it grows with each change, as a resync reads all documents.
	crdsQuiet = 10 * time.Second
	// crdsLife is how long a watch must last to reset the backoff of its errors.
	crdsLife = 5 * time.Second
)

// CRDWatcher watches the CRDs, and requests a resync when selectors may mean other resources. It caches none of them.
type CRDWatcher struct{ client rest.Interface }

// NewCRDWatcher makes one; nil if no selector depends on CRDs.
func NewCRDWatcher(client rest.Interface, selectors []Selector) *CRDWatcher {
	if !dependsOnCRDs(selectors) {
		return nil
	}
	return &CRDWatcher{client: client}
}

// Run requests a resync soon after any CRD has changed, until the context ends. If the operator may not watch CRDs,
// Run logs that once; the operator depends on periodic resyncs then.
func (w *CRDWatcher) Run(ctx context.Context, requester resync.Requester) {
	changed := make(chan struct{}, 1)
	var reading sync.WaitGroup
	defer reading.Wait()
	reading.Go(func() {
		w.read(ctx, func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		})
	})
	pause, last := resync.Backoff(), time.Time{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		if time.Since(last) > crdsQuiet {
			pause = resync.Backoff()
		}
		last = time.Now()
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause.Step()):
			requester.RequestResync()
		}
	}
}

// read lists and watches CRDs, and calls changed for every change.
func (w *CRDWatcher) read(ctx context.Context, changed func()) {
	version, said := "", ""
	pause := resync.Backoff()
	for ctx.Err() == nil {
		var err error
		began := time.Now()
		if version == "" {
			if version, err = w.list(ctx); err == nil {
				changed() // what has happened before is not known
			}
		}
		if err == nil {
			version, err = w.watch(ctx, version, changed)
		}
		if time.Since(began) > crdsLife {
			pause, said = resync.Backoff(), ""
		}
		after := pause.Step()
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsUnauthorized(err) {
			after = resync.Interval
		}
		if err != nil && ctx.Err() == nil && err.Error() != said {
			said = err.Error()
			logging.Warn(logf.FromContext(ctx),
				"Cannot watch CRDs; new and removed kinds are found by periodic discovery",
				"reason", said, "within", resync.Interval.String())
		}
		select {
		case <-ctx.Done():
		case <-time.After(after):
		}
	}
}

// list gives the resource version from which to watch.
func (w *CRDWatcher) list(ctx context.Context) (string, error) {
	data, err := w.request("PartialObjectMetadataList").Param("limit", "1").Do(ctx).Raw()
	if err != nil {
		return "", fmt.Errorf("listing CRDs: %w", granting(worded(err, data)))
	}
	var list metav1.PartialObjectMetadataList
	if err := json.Unmarshal(data, &list); err != nil {
		return "", fmt.Errorf("reading the list of CRDs: %w", err)
	}
	return list.ResourceVersion, nil
}

// worded is the error with the message of the API server, which is not decoded if the answer has no text/plain.
func worded(err error, answer []byte) error {
	var status metav1.Status
	if json.Unmarshal(answer, &status) != nil || status.Kind != "Status" || status.Message == "" {
		return err
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// granting adds to a missing permission which one it is.
func granting(err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	return fmt.Errorf("%w: grant the verbs list and watch on customresourcedefinitions.apiextensions.k8s.io "+
		"to be notified at once", err)
}

func (w *CRDWatcher) request(as string) *rest.Request {
	return w.client.Get().AbsPath(crdsPath).SetHeader("Accept", fmt.Sprintf(crdsAccept, as))
}

// watch reads events until the server closes the watch, which is no error. It gives the resource version from which to
// continue; an empty one asks for a new list.
func (w *CRDWatcher) watch(ctx context.Context, version string, changed func()) (string, error) {
	stream, err := w.request("PartialObjectMetadata").Param("watch", "true").Param("allowWatchBookmarks", "true").
		Param("resourceVersion", version).Stream(ctx)
	if err != nil {
		return "", fmt.Errorf("watching CRDs: %w", granting(err))
	}
	defer func() { _ = stream.Close() }()
	for events := json.NewDecoder(stream); ; {
		var event crdEvent
		switch err := events.Decode(&event); {
		case errors.Is(err, io.EOF):
			return version, nil
		case err != nil:
			return version, fmt.Errorf("reading changes of CRDs: %w", err)
		case event.Type == watch.Error && event.Object.Code == http.StatusGone:
			return "", nil // the version is too old
		case event.Type == watch.Error:
			return "", fmt.Errorf(
				"watching CRDs: %w",
				&apierrors.StatusError{
					ErrStatus: metav1.Status{Code: event.Object.Code, Message: event.Object.Message},
				},
			)
		case event.Type != watch.Bookmark:
			changed()
		}
		version = event.Object.Metadata.ResourceVersion
	}
}

// crdEvent is a CRD without its schema; or, with the type ERROR, a status.
type crdEvent struct {
	Type   watch.EventType
	Object struct {
		Metadata metav1.ObjectMeta
		Code     int32
		Message  string
	}
}
