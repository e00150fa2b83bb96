package inspection

import (
	"encoding/json"
	"errors"
	"net/http"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal/console"
)

// ExplainPath is where explanations are: with the parameters kind, namespace and name; and output, which is "json" or
// "text".
const ExplainPath = "/explain"

// StandingPath is where the standing of the operator is.
const StandingPath = "/standing"

// Journal is what is asked.
type Journal interface {
	Explain(kind string, object types.NamespacedName) (journal.Explanation, error)
	Standing() journal.Standing
}

// Problem is the answer to a request that cannot be answered otherwise.
type Problem struct {
	Error string `json:"error"`
}

// Handler answers requests. The page is at [console.Path] and below; nil is none.
func Handler(from Journal, page http.Handler) http.Handler {
	mux := http.NewServeMux()
	if page != nil {
		mux.Handle(console.Path, page)
		mux.Handle(console.Path+"/", page)
	}
	mux.HandleFunc("GET "+ExplainPath, func(w http.ResponseWriter, r *http.Request) { explain(w, r, from) })
	mux.HandleFunc("GET "+StandingPath, func(w http.ResponseWriter, _ *http.Request) { answer(w, from.Standing()) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, r)
	})
}

func explain(w http.ResponseWriter, r *http.Request, from Journal) {
	query := r.URL.Query()
	kind, name := query.Get("kind"), query.Get("name")
	if kind == "" || name == "" {
		refuse(w, http.StatusBadRequest, "give the kind and the name of an object: "+
			ExplainPath+"?kind=KIND&namespace=NAMESPACE&name=NAME")
		return
	}
	found, err := from.Explain(kind, types.NamespacedName{Namespace: query.Get("namespace"), Name: name})
	var unknown *journal.QuestionError
	switch {
	case errors.As(err, &unknown):
		refuse(w, http.StatusNotFound, err.Error())
	case err != nil:
		refuse(w, http.StatusInternalServerError, err.Error())
	case query.Get("output") == "text":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_ = found.WriteText(w) // an error is one of the client
	default:
		answer(w, found)
	}
}

// refuse says what is wrong.
func refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(Problem{why})
}

func answer(w http.ResponseWriter, what any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(what) // an error is one of the client
}
