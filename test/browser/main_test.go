package browser_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/test/browser"
)

func TestMain(m *testing.M) { browser.Main(m) }

// serve gives the URL of a page with such a body, and with a strict policy, as pages without external assets have it.
func serve(t *testing.T, body string) string {
	t.Helper()
	const head = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Test</title><style>
		body { font: 16px system-ui, sans-serif; background: #fff; color: #222 }
		@media (prefers-color-scheme: dark) { body { background: #111; color: #eee } }
	</style></head><body>`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy",
			"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src 'self'")
		_, _ = w.Write([]byte(head + body + "</body></html>"))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// recorder is a test that is allowed to fail: its failures are kept.
type recorder struct {
	testing.TB
	cleanups []func()
	failures []string
	skips    []string
}

// runCleanups is what happens at the end of a test, the last thing first.
func (r *recorder) runCleanups() {
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.cleanups[i]()
	}
}
