package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
)

// playSession runs the commands of session.txt, which examples/lessons/session plays on virtual time, and waits for the
// messages of the operator below them instead of the pauses between them.
func (r exampleRun) playSession(ctx context.Context, e exampleProgram) {
	GinkgoHelper()
	lines := strings.Split(string(contentOf(filepath.Join(e.folder, "session.txt"))), "\n")
	program := build(r.folder)
	operator, from := run(program, r.env, r.args...), 0
	log := func() string { return string(operator.Err.Contents()[from:]) }
	exit := func() {
		r.beforeExit()
		Eventually(operator.Terminate()).Should(gexec.Exit(0))
	}
	for i, line := range lines {
		next := append(lines, "")[i+1]
		switch {
		case line == "# Stop the operator.":
			exit()
		case line == "# Start the operator.":
			operator, from = run(program, r.env, r.args...), 0
		case strings.HasPrefix(line, "$ kubectl "):
			By(line)
			command := e.inNamespace(ctx, r.namespace, strings.TrimPrefix(line, "$ "))
			if i == 0 && strings.Contains(next, " operation=") { // the API server learns late of webhooks
				Eventually(func() string { return command(" --dry-run=server") + log() }).Should(matchSessionLine(next))
			}
			from = len(operator.Err.Contents())
			isRefused := strings.Contains(strings.Join(lines[i:min(i+4, len(lines))], "\n"), "Error from server")
			Expect(strings.Contains(command(""), "exit code 0")).NotTo(Equal(isRefused), line)
		case strings.HasPrefix(line, "["):
			Eventually(log).Should(matchSessionLine(line))
		}
	}
	exit()
}

// inNamespace returns a command of kubectl in a namespace, which returns the output and takes further flags.
func (e exampleProgram) inNamespace(ctx context.Context, ns, line string) func(flags string) string {
	GinkgoHelper()
	kubectl := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl") +
		" --kubeconfig=" + kubeconfigPath() + " -n " + ns
	if _, name, found := strings.Cut(line, " -f "); found {
		file, err := filepath.Abs(e.file(name))
		Expect(err).NotTo(HaveOccurred())
		line = strings.TrimSuffix(line, name) + file
	}
	return func(flags string) string {
		// The shell splits the line as it does in the documentation.
		script := strings.Replace(line, "kubectl", kubectl, 1) + flags + "; echo exit code $?"
		output, _ := exec.CommandContext(ctx, "sh", "-c", script).CombinedOutput() // the output has the error
		return string(output)
	}
}

// sessionLine matches the message of a log line in a session, and its handler.
var sessionLine = regexp.MustCompile(`^\[\S+\] (.*?)(?: \w+=.*?)?(?: handler=(\S+).*)?$`)

// matchSessionLine matches a log with the message and the handler of a line.
func matchSessionLine(line string) OmegaMatcher {
	parts := sessionLine.FindStringSubmatch(line)
	if parts == nil {
		return ContainSubstring(line)
	}
	pattern := regexp.QuoteMeta(parts[1])
	if parts[2] != "" {
		pattern += ".*handler=" + regexp.QuoteMeta(parts[2])
	}
	return MatchRegexp(pattern)
}
