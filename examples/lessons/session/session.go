package session

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// sessionFile is in the folder of the test.
const sessionFile = "session.txt"

// commandPause is the time after a command. Intervals of whole seconds do not end at the same time.
const commandPause = 800 * time.Millisecond

// Play runs the commands of session.txt in the folder of the test, and compares the output with the lines below them.
// With FACADETEST_UPDATE=1 in the environment, it writes these lines.
//
// A command begins with "$ ": kubectl with the verbs and flags that [cluster] has, my-operator explain, or sleep. The
// lines "# Start the operator." and "# Stop the operator." are commands, too. The operator runs from the beginning.
// Lines with one of the texts in without are left out, such as those of a handler that runs beside others, in any
// order.
func Play(t *testing.T, newOperator func() *kopf.Operator, without ...string) {
	t.Helper()
	content, err := os.ReadFile(sessionFile)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		p := &player{t: t, newOperator: newOperator, cluster: newCluster(t), log: &transcript{excludedTexts: without}}
		p.cluster.output = p.log
		p.start()
		got := p.log.take()
		for line := range strings.Lines(string(content)) {
			if !strings.HasPrefix(line, "$ ") && !strings.HasPrefix(line, "# ") {
				continue
			}
			got += line
			p.run(strings.TrimSpace(line))
			time.Sleep(commandPause)
			got += p.log.take()
		}
		if os.Getenv("FACADETEST_UPDATE") == "1" {
			if err := os.WriteFile(sessionFile, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
			return
		}
		if d := cmp.Diff(string(content), got); d != "" {
			t.Errorf("%s differs from the log; FACADETEST_UPDATE=1 writes it (-file, +log):\n%s", sessionFile, d)
		}
	})
}

// player runs one session.
type player struct {
	t              *testing.T
	newOperator    func() *kopf.Operator
	cluster        *cluster
	operator       *facadetest.Runner
	explainHandler http.Handler
	log            *transcript
}

func (p *player) run(line string) {
	p.t.Helper()
	switch words := split(strings.TrimPrefix(line, "$ ")); {
	case line == "# Start the operator.":
		p.start()
	case line == "# Stop the operator.":
		if err := p.operator.Stop(); err != nil {
			p.t.Error(err)
		}
	case strings.HasPrefix(line, "#"):
	case words[0] == "sleep" && len(words) == 2:
		duration, err := time.ParseDuration(words[1])
		if err != nil {
			p.t.Fatalf("%s: %v", line, err)
		}
		time.Sleep(duration)
	case words[0] == "my-operator" && len(words) == 4 && words[1] == "explain":
		_, _ = fmt.Fprint(p.log, p.explanation(words[2], words[3]))
	case words[0] == "kubectl":
		if err := p.cluster.kubectl(p.t.Context(), words[1:]); err != nil {
			_, _ = fmt.Fprintln(p.log, serverError(err))
		}
	default:
		p.t.Fatalf("%s: the command is unknown", line)
	}
}

func (p *player) start() {
	p.t.Helper()
	log, op := logr.FromSlogHandler(logHandler{transcript: p.log}), p.newOperator()
	p.explainHandler = op.ExplainHandler()
	p.operator = facadetest.Start(p.t, op, facadetest.Settings(kopf.RunSettings{
		Config: memapi.Config(p.cluster.server), Log: log,
	}))
	p.operator.Ready()
}

// timePattern matches the times of explanations and objects, which differ in each run.
var timePattern = regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?( UTC|Z|\+00:00)?`)

// explanation returns the output of the command explain, without the history.
func (p *player) explanation(kind, object string) string {
	namespace, name, _ := strings.Cut(object, "/")
	query := url.Values{"kind": {kind}, "namespace": {namespace}, "name": {name}, "output": {"text"}}
	request := httptest.NewRequest(http.MethodGet, "/explain?"+query.Encode(), nil)
	answer := httptest.NewRecorder()
	p.explainHandler.ServeHTTP(answer, request)
	text, _, _ := strings.Cut(answer.Body.String(), "\nHISTORY")
	return timePattern.ReplaceAllString(text, "<time>")
}
