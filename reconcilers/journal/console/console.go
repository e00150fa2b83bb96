package console

import (
	"embed"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/peering/attendance"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

// Path is where the page is. Its parts are below.
const Path = "/console"

// policy allows the page what comes from its own server, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

//go:embed page
var page embed.FS

// Console is the page of one operator.
type Console struct {
	journal  *journal.Journal
	overview *Overview
	peers    func() []attendance.Peer
	streams  chan struct{} // has room for one more
	mux      http.ServeMux
}

// New makes the page of an operator with this journal. Peers may be nil if it looks for none.
func New(of *journal.Journal, peers func() []attendance.Peer) *Console {
	c := &Console{
		journal: of, overview: NewOverview(of), peers: peers, streams: make(chan struct{}, mostStreams),
	}
	for path, file := range map[string]string{
		Path: "console.html", Path + "/style.css": "style.css", Path + "/script.js": "script.js",
	} {
		c.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			http.ServeFileFS(w, r, page, "page/"+file)
		})
	}
	c.mux.HandleFunc("GET "+Path+"/events", c.stream)
	c.mux.HandleFunc("GET "+Path+"/object", c.explain)
	return c
}

// ServeHTTP answers all requests for the page and what it needs.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	c.mux.ServeHTTP(w, r)
}

// explanation is that of the journal, with its history in sentences.
type explanation struct {
	journal.Explanation
	History []sentence `json:"history"`
}

type sentence struct {
	At    time.Time  `json:"at"`
	First *time.Time `json:"first,omitempty"`
	Times int        `json:"times,omitempty"`
	Says  string     `json:"says"`
}

// explain answers for one object.
func (c *Console) explain(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	found, err := c.journal.Explain(query.Get("kind"), types.NamespacedName{
		Namespace: query.Get("namespace"), Name: query.Get("name"),
	})
	var unknown *journal.QuestionError
	if errors.As(err, &unknown) {
		http.Error(w, unknown.Error(), http.StatusNotFound)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer := explanation{Explanation: found, History: make([]sentence, 0, len(found.History))}
	for i := range found.History {
		e := &found.History[i]
		answer.History = append(answer.History, sentence{At: e.At, First: e.First, Times: e.Times, Says: e.String()})
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(answer) // an error is one of the client
}
