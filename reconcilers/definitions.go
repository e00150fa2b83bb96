package reconcilers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	// definitionsAccept leaves the schemas out, which may be large. Servers that cannot do so send them.
	definitionsAccept = "application/json;as=%s;g=meta.k8s.io;v=v1,application/json"
	// definitionsQuiet is after how long without changes the next one is looked into soon. The pause before that lets
	// the API server's own lists follow, and takes many changes for one: it grows while there are ever more, as each
	// review asks for everything.
	definitionsQuiet = 10 * time.Second
	// definitionsLife is how long a watch must have lived to be called a good one.
	definitionsLife = 5 * time.Second
)

// definitions watches the CRDs, to know when a review is due. None of them is kept.
type definitions struct{ discovery.DiscoveryInterface }

// mayChange tells whether CRDs can make a difference to what the selectors mean. Groups without a dot are the server's
// own.
func mayChange(selectors []Selector) bool {
	for _, s := range selectors {
		if s.searched() || strings.Contains(s.Group, ".") {
			return true
		}
	}
	return false
}

// follow has a doubt soon after something has happened to any CRD, until the context ends. An operator that may not see
// them is told once, and lives by reviews.
func (d definitions) follow(ctx context.Context, doubt func()) {
	changed := make(chan struct{}, 1)
	var reading sync.WaitGroup
	defer reading.Wait()
	reading.Go(func() {
		d.read(ctx, func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		})
	})
	pause, last := patience(), time.Time{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		if time.Since(last) > definitionsQuiet {
			pause = patience()
		}
		last = time.Now()
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause.Step()):
			doubt()
		}
	}
}

// read calls back for every change.
func (d definitions) read(ctx context.Context, changed func()) {
	version, said := "", ""
	pause := patience()
	for ctx.Err() == nil {
		var err error
		began := time.Now()
		if version == "" {
			if version, err = d.list(ctx); err == nil {
				changed() // what has happened before is not known
			}
		}
		if err == nil {
			version, err = d.watch(ctx, version, changed)
		}
		if time.Since(began) > definitionsLife {
			pause, said = patience(), ""
		}
		after := pause.Step()
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsUnauthorized(err) {
			after = reviewInterval
		}
		if err != nil && ctx.Err() == nil && err.Error() != said {
			said = err.Error()
			logf.FromContext(ctx).Info("CRDs cannot be watched now; kinds that come or go are noticed later, by "+
				"reviews",
				"reason", said, "within", reviewInterval.String())
		}
		select {
		case <-ctx.Done():
		case <-time.After(after):
		}
	}
}

// list gives the version from which to watch.
func (d definitions) list(ctx context.Context) (string, error) {
	data, err := d.request("PartialObjectMetadataList").Param("limit", "1").DoRaw(ctx)
	if err != nil {
		return "", fmt.Errorf("listing CRDs: %w", err)
	}
	var list metav1.PartialObjectMetadataList
	if err := json.Unmarshal(data, &list); err != nil {
		return "", fmt.Errorf("reading the list of CRDs: %w", err)
	}
	return list.ResourceVersion, nil
}

func (d definitions) request(as string) *rest.Request {
	return d.RESTClient().Get().AbsPath(definitionsPath).SetHeader("Accept", fmt.Sprintf(definitionsAccept, as))
}

// watch reads events until the server ends that, which is no error, and gives the version from which to go on; an empty
// one is to begin anew.
func (d definitions) watch(ctx context.Context, version string, changed func()) (string, error) {
	stream, err := d.request("PartialObjectMetadata").Param("watch", "true").Param("allowWatchBookmarks", "true").
		Param("resourceVersion", version).Stream(ctx)
	if err != nil {
		return "", fmt.Errorf("watching CRDs: %w", err)
	}
	defer func() { _ = stream.Close() }()
	for events := json.NewDecoder(stream); ; {
		var event definitionEvent
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

// definitionEvent is a CRD without its schema; or, with the type ERROR, a status.
type definitionEvent struct {
	Type   watch.EventType
	Object struct {
		Metadata metav1.ObjectMeta
		Code     int32
		Message  string
	}
}
