package inspection

import (
	"embed"
	"encoding/json"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/peering"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

// ConsolePath is the URL path of the page. The parts of the page are below it.
const ConsolePath = "/console"

// securityPolicy is the Content-Security-Policy: the page may load content from its own server only, and cannot be
// embedded in other pages.
const securityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// page holds the document, the style and the script of the page.
//
//go:embed page
var page embed.FS

// Console serves the page of one operator. It implements http.Handler.
type Console struct {
	journal  *journal.Journal
	overview *Overview
	peers    func() []peering.Peer
	streams  chan struct{} // one element for each open stream
	mux      http.ServeMux
}

// NewConsole creates the page of the operator that writes this journal. The function peers returns the operator's
// peers; it may be nil.
func NewConsole(of *journal.Journal, peers func() []peering.Peer) *Console {
	c := &Console{
		journal: of, overview: NewOverview(of), peers: peers, streams: make(chan struct{}, maxStreams),
	}
	// Only these three files are served: no path of a request reaches the file system.
	for path, file := range map[string]string{
		ConsolePath: "console.html", ConsolePath + "/style.css": "style.css", ConsolePath + "/script.js": "script.js",
	} {
		c.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			http.ServeFileFS(w, r, page, "page/"+file)
		})
	}
	c.mux.HandleFunc("GET "+ConsolePath+"/events", c.serveStream)
	c.mux.HandleFunc("GET "+ConsolePath+"/object", c.serveExplanation)
	return c
}

// ServeHTTP serves the page, its parts, the stream of events, and the explanations of objects.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The page shows data of the cluster: other sites must not read or embed it, and caches must not keep it.
	header := w.Header()
	header.Set("Content-Security-Policy", securityPolicy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	c.mux.ServeHTTP(w, r)
}

// explanation is the explanation of an object with its history in sentences, so that the script need not format
// entries.
type explanation struct {
	journal.Explanation
	History []sentence `json:"history"`
}

// sentence is one entry of the history as text.
type sentence struct {
	At    time.Time  `json:"at"`
	First *time.Time `json:"first,omitempty"`
	Times int        `json:"times,omitempty"`
	Text  string     `json:"says"`
}

// serveExplanation serves the explanation of one object as JSON.
func (c *Console) serveExplanation(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	found, err := c.journal.Explain(query.Get("kind"), types.NamespacedName{
		Namespace: query.Get("namespace"), Name: query.Get("name"),
	})
	// Each error is a QuestionError: the question is wrong, not the server, and the text says how to ask.
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	answer := explanation{Explanation: found, History: make([]sentence, 0, len(found.History))}
	for i := range found.History {
		e := &found.History[i]
		answer.History = append(answer.History, sentence{At: e.At, First: e.First, Times: e.Times, Text: e.String()})
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(answer) // it can only fail if the client has gone
}
