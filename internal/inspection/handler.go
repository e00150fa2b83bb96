package inspection

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/pprof"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

// ExplainPath is the path of explanations. Its parameters are kind, namespace, name, and output, which is "json" (the
// default) or "text".
const ExplainPath = "/explain"

// StandingPath is the path of the operator's current state.
const StandingPath = "/standing"

// ProfilesPath is the prefix of the paths of profiles. Package pprof requires this value.
const ProfilesPath = "/debug/pprof/"

// AnswerSource is the source of all answers.
type AnswerSource interface {
	Explain(kind string, object types.NamespacedName) (journal.Explanation, error)
	OperatorState() journal.OperatorState
}

// Problem is the body of a response with an error.
type Problem struct {
	// Operator is the name of the operator that answers. It is empty if the request was rejected because of its host
	// name.
	Operator string `json:"operator,omitempty"`
	Error    string `json:"error"`
}

// ExtraHandlers are the optional parts that are served besides explanations.
type ExtraHandlers struct {
	// Console is served at [ConsolePath] and below, and / redirects to it. Nil turns it off.
	Console http.Handler
	// Profiling serves net/http/pprof at [ProfilesPath].
	Profiling bool
}

// NewHandler returns a handler for explanations, the state of the operator, and the parts.
func NewHandler(from AnswerSource, parts ExtraHandlers) http.Handler {
	mux := http.NewServeMux()
	if parts.Console != nil {
		mux.Handle(ConsolePath, parts.Console)
		mux.Handle(ConsolePath+"/", parts.Console)
		mux.Handle("GET /{$}", http.RedirectHandler(ConsolePath, http.StatusFound))
	}
	if parts.Profiling {
		mux.Handle(ProfilesPath, profilesHandler())
	}
	mux.HandleFunc("GET "+ExplainPath, func(w http.ResponseWriter, r *http.Request) { serveExplanation(w, r, from) })
	mux.HandleFunc("GET "+StandingPath, func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, from.OperatorState())
	})
	// A browser must neither guess another content type nor show a stale answer.
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, r)
	})
}

// profilesHandler returns a handler for net/http/pprof. A separate mux is used, because importing pprof registers its
// handlers only at http.DefaultServeMux.
func profilesHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(ProfilesPath, pprof.Index)
	mux.HandleFunc(ProfilesPath+"cmdline", pprof.Cmdline)
	mux.HandleFunc(ProfilesPath+"profile", pprof.Profile)
	mux.HandleFunc(ProfilesPath+"symbol", pprof.Symbol)
	mux.HandleFunc(ProfilesPath+"trace", pprof.Trace)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The server's read timeout also cancels the context of a request that was read completely, which would end
		// each profile of more than a few seconds. Writers without deadlines return an error and have no such timeout.
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		mux.ServeHTTP(w, r)
	})
}

// serveExplanation answers one request for an explanation. An unknown object or kind is "not found", with a text for
// people.
func serveExplanation(w http.ResponseWriter, r *http.Request, from AnswerSource) {
	query := r.URL.Query()
	refuse := func(status int, why string) { writeJSON(w, status, Problem{from.OperatorState().Operator, why}) }
	kind, name := query.Get("kind"), query.Get("name")
	if kind == "" || name == "" {
		refuse(http.StatusBadRequest, "give the kind and the name of an object: "+
			ExplainPath+"?kind=KIND&namespace=NAMESPACE&name=NAME")
		return
	}
	found, err := from.Explain(kind, types.NamespacedName{Namespace: query.Get("namespace"), Name: name})
	var unknown *journal.QuestionError
	switch {
	case errors.As(err, &unknown):
		refuse(http.StatusNotFound, err.Error())
	case err != nil:
		refuse(http.StatusInternalServerError, err.Error())
	case query.Get("output") == "text":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_ = found.WriteText(w) // an error here concerns only the client
	default:
		writeJSON(w, http.StatusOK, found)
	}
}

// writeJSON writes a response in JSON. An error here concerns only the client.
func writeJSON(w http.ResponseWriter, status int, what any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(what)
}
