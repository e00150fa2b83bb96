package memapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// bookmarkInterval is the interval of bookmarks for watches that accept them.
const bookmarkInterval = time.Minute

// LimitHistory keeps about the given number of changes for watches that resume. A watch that needs older changes ends
// with the status 410, also if it is running but too slow. Its client then lists again. By default, all changes are
// kept.
func (s *Server) LimitHistory(changes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.historyLimit = changes
}

// Compact drops the history. Watches that start from an earlier version get the status 410. Running watches must have
// received all changes before the call.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history, s.compactedVersion = nil, s.version
}

// watchEventFor returns the type and the object of the watch event for a change, for a watch with these selectors. The
// type is empty if the watch does not show the change.
func (e event) watchEventFor(wanted objectFilter) (kind string, object map[string]any) {
	was, is := wanted.matchesObject(e.before), wanted.matchesObject(e.after)
	switch {
	case is && was:
		return "MODIFIED", e.after
	case is:
		return "ADDED", e.after
	case was && e.finalState != nil:
		return "DELETED", e.finalState
	case was:
		// The object no longer matches the selectors. As in the real server, the event has the last matching state with
		// the version of the change.
		left := cloneObject(e.before)
		metadataOf(left)["resourceVersion"] = strconv.FormatInt(e.version, 10)
		return "DELETED", left
	default:
		return "", nil
	}
}

// stream is one running watch.
type stream struct {
	*Server
	target
	filter           objectFilter
	lastVersion      int64
	initialObjects   []map[string]any // the objects at the start of the watch
	acceptsBookmarks bool             // the client accepts bookmarks
	isStreamingList  bool             // a bookmark must mark the end of the initial objects
	out              *io.PipeWriter
}

// startWatch starts a watch. Its goroutine runs until the client closes the body, the context ends, the watch's timeout
// passes, or the resource is removed.
func (s *Server) startWatch(r *http.Request, t target) *http.Response {
	query := r.URL.Query()
	options, err := listOptions(query, true)
	if err != nil {
		return newErrorResponse(r, err)
	}
	wanted, err := s.parseInterest(t, query)
	if err != nil {
		return newErrorResponse(r, err)
	}
	// The pipe does not buffer: the goroutine writes as fast as the client reads.
	in, out := io.Pipe()
	w := &stream{
		Server: s, target: t, filter: wanted, lastVersion: s.version, out: out,
		acceptsBookmarks: options.AllowWatchBookmarks,
	}
	// Without a version, or with "0", a watch starts with the current objects as additions.
	asked := options.ResourceVersion
	w.isStreamingList = ptr.Deref(options.SendInitialEvents, false)
	if w.isStreamingList || asked == "" || asked == "0" {
		w.initialObjects = s.matchingObjects(t, wanted)
	} else if w.lastVersion, err = parseVersion(asked); err != nil {
		return newErrorResponse(r, internalError(err))
	} else if w.lastVersion < s.compactedVersion {
		return newErrorResponse(r, apierrors.NewResourceExpired(
			fmt.Sprintf("too old resource version: %d (%d)", w.lastVersion, s.compactedVersion),
		))
	}
	ctx, cancel := context.WithCancel(r.Context())
	if limit := ptr.Deref(options.TimeoutSeconds, 0); limit > 0 {
		ctx, cancel = context.WithTimeout(r.Context(), time.Duration(limit)*time.Second)
	}
	go func() {
		defer cancel()
		_ = out.CloseWithError(w.sendEvents(ctx))
	}()
	return newResponse(r, http.StatusOK, watchBody{in, cancel}, -1)
}

// watchBody is the body of a watch. Closing it ends the watch.
type watchBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b watchBody) Close() error {
	b.cancel()
	return b.ReadCloser.Close()
}

// sendEvents sends the events of a watch until it ends. An io.EOF ends the body without an error, as the real server
// does.
func (w *stream) sendEvents(ctx context.Context) error {
	for _, object := range w.initialObjects {
		if err := w.sendObject("ADDED", object); err != nil {
			return err
		}
	}
	// Clients of streaming lists wait for this bookmark.
	if w.isStreamingList {
		if err := w.sendBookmark(w.lastVersion, map[string]any{metav1.InitialEventsAnnotationKey: "true"}); err != nil {
			return err
		}
	}
	bookmarks := time.NewTicker(bookmarkInterval)
	defer bookmarks.Stop()
	for {
		// A write blocks until the client reads, so a slow client can fall behind a limited history.
		served, changed, events, version := w.pendingChanges()
		if version < 0 {
			return w.sendStatus(apierrors.NewResourceExpired("the watch has not kept up with the changes"))
		}
		for _, e := range events {
			if kind, object := e.watchEventFor(w.filter); kind != "" {
				if err := w.sendObject(kind, object); err != nil {
					return err
				}
			}
		}
		// All changes up to this version were sent.
		w.lastVersion = version
		// The resource was removed, so the watch ends.
		if !served {
			return io.EOF
		}
		// Wait for a change, the next bookmark, or the end.
		select {
		case <-ctx.Done():
			return io.EOF
		case <-changed:
		case <-bookmarks.C:
			if err := w.sendBookmark(version, nil); err != nil {
				return err
			}
		}
	}
}

// sendObject sends an object in the version of the watch. If it cannot be converted, the watch ends with an error
// event.
func (w *stream) sendObject(kind string, object map[string]any) error {
	shown := w.servedObject(object)
	if w.notes.failure != nil {
		return w.sendStatus(w.notes.failure)
	}
	return w.sendEvent(kind, w.formatAnswer(shown))
}

// pendingChanges returns the changes of the resource after the last one that was sent, and the channel that the next
// change closes. The version is negative if the history no longer has these changes.
func (w *stream) pendingChanges() (served bool, changed <-chan struct{}, events []event, version int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// The resource may have been removed while the watch was waiting.
	_, served = w.findResource(w.groupVersion(), w.Plural)
	// Without a limit, only Compact drops changes. It requires that running watches have received all of them.
	if s := w.Server; s.historyLimit > 0 && w.lastVersion < s.compactedVersion {
		return served, w.changed, nil, -1
	}
	// The history is sorted by version.
	first, _ := slices.BinarySearchFunc(
		w.history, w.lastVersion+1, func(e event, version int64) int { return int(e.version - version) },
	)
	for _, e := range w.history[first:] {
		if e.resource == w.groupResource() {
			events = append(events, e)
		}
	}
	return served, w.changed, events, w.version
}

// sendBookmark sends a bookmark, if the client accepts bookmarks.
func (w *stream) sendBookmark(version int64, annotations map[string]any) error {
	if !w.acceptsBookmarks {
		return nil
	}
	metadata := map[string]any{"resourceVersion": strconv.FormatInt(version, 10)}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	return w.sendEvent("BOOKMARK", w.formatAnswer(w.withKind(map[string]any{"metadata": metadata})))
}

// sendStatus sends an error event. It always returns an error, because a watch ends with that event.
func (w *stream) sendStatus(err *apierrors.StatusError) error {
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return errors.Join(w.sendEvent("ERROR", status), io.EOF)
}

// sendEvent sends one event. Events are separated by newlines.
func (w *stream) sendEvent(kind string, object any) error {
	data, err := json.Marshal(map[string]any{"type": kind, "object": object})
	if err != nil {
		return err
	}
	_, err = w.out.Write(append(data, '\n'))
	return err
}
