package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/internal/transport"
)

// ResyncInterval is the longest time between two resyncs. Aggregated API servers can come and go without an event that
// could be watched.
const ResyncInterval = 5 * time.Minute

// ResyncBackoff returns the delays between attempts to resolve selectors: from one second, doubling, to 30 seconds.
func ResyncBackoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Steps: 6, Cap: 30 * time.Second}
}

const (
	// crdsPath is the list of CRDs. The watch uses plain requests, so CRDs do not need to be in a scheme.
	crdsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	// crdsAccept excludes the schemas, which may be large. Servers that do not support that send whole CRDs.
	crdsAccept = "application/json;as=%s;g=meta.k8s.io;v=v1,application/json"
	// crdsQuietPeriod is the time without changes that resets the delay before a resync. During the delay, the API
	// server's discovery documents catch up, and further changes are merged into one resync. The delay grows with each
	// change, because a resync reads all documents.
	crdsQuietPeriod = 10 * time.Second
	// crdsStableDuration is how long a watch must last to reset the backoff of its errors.
	crdsStableDuration = 5 * time.Second
)

// CRDWatcher watches the CRDs, and requests a resync when selectors may match other resources. It does not cache CRDs.
type CRDWatcher struct{ client rest.Interface }

// NewCRDWatcher makes a CRDWatcher; nil if no selector depends on CRDs.
func NewCRDWatcher(client rest.Interface, selectors []Selector) *CRDWatcher {
	if !slices.ContainsFunc(selectors, Selector.DependsOnCRDs) {
		return nil
	}
	return &CRDWatcher{client: client}
}

// Run calls requestResync soon after any CRD has changed, until the context ends. If the operator may not watch CRDs,
// Run logs that once; new kinds are then found by the periodic resyncs only.
func (w *CRDWatcher) Run(ctx context.Context, requestResync func()) {
	// One pending change is enough, as a resync handles all changes before it.
	changed := make(chan struct{}, 1)
	var reading sync.WaitGroup
	defer reading.Wait()
	reading.Go(func() {
		w.followCRDs(ctx, func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		})
	})
	pause, last := ResyncBackoff(), time.Time{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		// The last change was long ago: this one can be handled soon.
		if time.Since(last) > crdsQuietPeriod {
			pause = ResyncBackoff()
		}
		last = time.Now()
		// Wait even for the first change: the discovery documents lag behind the CRD.
		if transport.WaitDelay(ctx, pause.Step()) != nil {
			return
		}
		requestResync()
	}
}

// followCRDs lists and watches CRDs, and calls changed for every change. It repeats both until the context ends.
func (w *CRDWatcher) followCRDs(ctx context.Context, changed func()) {
	version, said := "", ""
	pause := ResyncBackoff()
	for ctx.Err() == nil {
		var err error
		began := time.Now()
		// An empty version means that the former watch cannot be continued.
		if version == "" {
			if version, err = w.listVersion(ctx); err == nil {
				changed() // there may have been changes between the last watch and this list
			}
		}
		if err == nil {
			version, err = w.watchChanges(ctx, version, changed)
		}
		if time.Since(began) > crdsStableDuration {
			pause, said = ResyncBackoff(), ""
		}
		after := pause.Step()
		// Such an error does not go away soon: wait as long as for a periodic resync.
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsUnauthorized(err) {
			after = ResyncInterval
		}
		// Log each reason once, not at each attempt.
		if err != nil && ctx.Err() == nil && err.Error() != said {
			said = err.Error()
			logging.Warn(logf.FromContext(ctx),
				"Cannot watch CRDs; new and removed kinds are found by periodic discovery",
				"reason", said, "within", ResyncInterval.String())
		}
		_ = transport.WaitDelay(ctx, after)
	}
}

// listVersion returns the resource version from which to watch. It requests one item only, because the items are not
// used.
func (w *CRDWatcher) listVersion(ctx context.Context) (string, error) {
	data, err := w.newRequest("PartialObjectMetadataList").Param("limit", "1").Do(ctx).Raw()
	if err != nil {
		return "", fmt.Errorf("listing CRDs: %w", withGrantHint(withServerMessage(err, data)))
	}
	var list metav1.PartialObjectMetadataList
	if err := json.Unmarshal(data, &list); err != nil {
		return "", fmt.Errorf("reading the list of CRDs: %w", err)
	}
	return list.ResourceVersion, nil
}

// withServerMessage returns the error with the message of the API server. The client does not decode the message if the
// answer is not of the type text/plain.
func withServerMessage(err error, answer []byte) error {
	var status metav1.Status
	if json.Unmarshal(answer, &status) != nil || status.Kind != "Status" || status.Message == "" {
		return err
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// withGrantHint adds the missing permission to an error that forbids the request.
func withGrantHint(err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	return fmt.Errorf("%w: grant the verbs list and watch on customresourcedefinitions.apiextensions.k8s.io "+
		"to be notified at once", err)
}

// newRequest returns a request for CRDs without their schemas, as objects of the given kind of metadata.
func (w *CRDWatcher) newRequest(as string) *rest.Request {
	return w.client.Get().AbsPath(crdsPath).SetHeader("Accept", fmt.Sprintf(crdsAccept, as))
}

// watchChanges reads events until the server closes the watch, which is not an error. It returns the resource version
// from which to continue; an empty one requires a new list.
func (w *CRDWatcher) watchChanges(ctx context.Context, version string, changed func()) (string, error) {
	stream, err := w.newRequest("PartialObjectMetadata").Param("watch", "true").Param("allowWatchBookmarks", "true").
		Param("resourceVersion", version).Stream(ctx)
	if err != nil {
		return "", fmt.Errorf("watching CRDs: %w", withGrantHint(err))
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
			// Bookmarks carry only a newer version. Every other event is a change.
			changed()
		}
		version = event.Object.Metadata.ResourceVersion
	}
}

// crdEvent is a watch event of a CRD without its schema; if the type is ERROR, the object is a status.
type crdEvent struct {
	Type   watch.EventType
	Object struct {
		Metadata metav1.ObjectMeta
		Code     int32
		Message  string
	}
}
