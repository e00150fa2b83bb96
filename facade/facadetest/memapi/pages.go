package memapi

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxPages limits the stored remainders of paginated lists. Clients that abandon a list never release theirs.
const maxPages = 200

// listOptions reads and validates the options of a list or a watch with the functions of the real server.
func listOptions(query url.Values, watching bool) (*internalversion.ListOptions, error) {
	given := &metav1.ListOptions{}
	if err := metav1.Convert_url_Values_To_v1_ListOptions(&query, given, nil); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	options := &internalversion.ListOptions{
		Watch: watching, ResourceVersion: given.ResourceVersion, ResourceVersionMatch: given.ResourceVersionMatch,
		SendInitialEvents: given.SendInitialEvents, Limit: given.Limit, Continue: given.Continue,
		AllowWatchBookmarks: given.AllowWatchBookmarks, TimeoutSeconds: given.TimeoutSeconds,
	}
	// The validation includes combinations, such as a continue token with resourceVersionMatch.
	if problems := validation.ValidateListOptions(options, true); len(problems) > 0 {
		return nil, apierrors.NewInvalid(
			schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", problems,
		)
	}
	return options, nil
}

// checkVersionReached refuses a read at a version that does not exist yet. The real server waits a few seconds for that
// version before it does so.
func (s *Server) checkVersionReached(wanted string) error {
	if wanted == "" {
		return nil
	}
	version, err := parseVersion(wanted)
	if err != nil {
		return apierrors.NewBadRequest("invalid resource version: " + err.Error())
	}
	if version <= s.version {
		return nil
	}
	refused := apierrors.NewTimeoutError(
		fmt.Sprintf("Too large resource version: %d, current: %d", version, s.version), 1,
	)
	refused.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version",
	}}
	return refused
}

// parseVersion parses a resource version that a client has sent.
func parseVersion(text string) (int64, error) {
	version, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, field.Invalid(field.NewPath("resourceVersion"), text, err.Error())
	}
	return int64(version), nil
}

// firstPage returns a list, or its first page if the client set a limit.
func (s *Server) firstPage(
	t target, wanted objectFilter, options *internalversion.ListOptions,
) (map[string]any, error) {
	if err := s.checkVersionReached(options.ResourceVersion); err != nil {
		return nil, err
	}
	exact := options.ResourceVersionMatch == metav1.ResourceVersionMatchExact
	// Only the current state exists.
	if exact && options.ResourceVersion != s.currentVersion() {
		return nil,
			unsupportedError("lists of a former state (resourceVersionMatch=Exact): it does not keep former states")
	}
	limit := options.Limit
	if options.ResourceVersion == "0" && !exact {
		limit = 0 // the real server answers these from its cache, without pages
	}
	all := s.objectsWith(t, wanted.isInScope)
	return s.newPage(t, page{t.groupResource(), s.currentVersion(), all}, wanted, limit), nil
}

// nextPage returns the next page of a list by its continue token. Like in the real server, the request has to repeat
// the selectors.
func (s *Server) nextPage(
	t target, wanted objectFilter, options *internalversion.ListOptions,
) (map[string]any, error) {
	// The token determines the version.
	if options.ResourceVersion != "" && options.ResourceVersion != "0" {
		return nil, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	name, err := base64.RawURLEncoding.DecodeString(options.Continue)
	if err != nil {
		return nil, apierrors.NewBadRequest("invalid continue token: continue key is not valid: " + err.Error())
	}
	rest, known := s.pages[string(name)]
	// Pages are dropped when there are too many. A token that is unknown although none was dropped never existed.
	switch {
	// Tokens are numbered, so an unknown one may have been valid.
	case !known && s.pageCount > maxPages:
		return nil, expiredPage()
	case !known || rest.resource != t.groupResource():
		return nil, apierrors.NewBadRequest("invalid continue token: it is not of a list of " + t.Plural)
	case s.isBeforeHistory(rest.version):
		return nil, expiredPage()
	}
	return s.newPage(t, rest, wanted, options.Limit), nil
}

// expiredPage returns the error for a list whose remaining pages were dropped.
func expiredPage() error {
	return apierrors.NewResourceExpired("The provided continue parameter is too old to display a " +
		"consistent list result. You must start a new list without the continue parameter.")
}

// isBeforeHistory reports whether the version is older than the history.
func (s *Server) isBeforeHistory(version string) bool {
	then, _ := strconv.ParseInt(version, 10, 64)
	return then < s.compactedVersion
}

// newPage returns one page of a list, with a token for the rest. Like the real server, it looks through the objects
// until the page is full: the rest may be without any selected object.
func (s *Server) newPage(t target, p page, wanted objectFilter, limit int64) map[string]any {
	items, seen := []any{}, 0
	for _, object := range p.remaining {
		if limit > 0 && int64(len(items)) == limit {
			break
		}
		seen++
		if wanted.matchesObject(object) {
			items = append(items, t.servedObject(object))
		}
	}
	answer := s.listOf(t, items)
	metadata := metadataOf(answer)
	metadata["resourceVersion"] = p.version // all pages show that of the first one
	// The rest is stored under a new name; the token of the former page is not reused.
	if seen < len(p.remaining) {
		s.pageCount++
		name := fmt.Sprintf("page-%d", s.pageCount)
		rest := p
		rest.remaining = p.remaining[seen:]
		s.pages[name] = rest
		delete(s.pages, fmt.Sprintf("page-%d", s.pageCount-maxPages))
		metadata["continue"] = base64.RawURLEncoding.EncodeToString([]byte(name))
		// The real server cannot count the remaining objects of a list with a selector, so it does not report a number
		// then. With a shardSelector, it reports one that includes all objects.
		if wanted.labels.Empty() && wanted.fields.Empty() {
			metadata["remainingItemCount"] = int64(len(p.remaining)) - limit
		}
	}
	wanted.shards.addInfo(t, metadata)
	return answer
}
