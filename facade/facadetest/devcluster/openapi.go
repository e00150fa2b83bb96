package devcluster

import "net/http"

func (h *handler) serveOpenAPI(w http.ResponseWriter, r *http.Request, parts []string) {
	writeError(w, notImplemented("not yet"))
}
