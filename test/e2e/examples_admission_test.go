package e2e_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// warnings collects the warnings that the API server sends to a client, in the format of kubectl.
type warnings struct {
	mu       sync.Mutex
	messages []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.messages = append(w.messages, "Warning: "+text)
}

func (w *warnings) list() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.messages[:len(w.messages):len(w.messages)]
}

// requireRefusal repeats a dry run until it is rejected, because the API server uses a changed webhook configuration
// only after a delay. The lines of the step match the error.
func requireRefusal(ctx context.Context, folder, ns string, obj *unstructuredObject, s step) {
	GinkgoHelper()
	try := func() error {
		patch := client.RawPatch(types.MergePatchType, []byte(s.argument))
		return api.Patch(ctx, obj.DeepCopy(), patch, client.DryRunAll)
	}
	switch {
	case s.argument == "delete":
		try = func() error { return api.Delete(ctx, obj.DeepCopy(), client.DryRunAll) }
	case strings.HasSuffix(s.argument, ".yaml"):
		other := read(filepath.Join(folder, s.argument), ns)
		try = func() error { return api.Create(ctx, other.DeepCopy(), client.DryRunAll) }
	}
	for _, line := range s.lines {
		Eventually(try).Should(MatchError(MatchRegexp(line)), s.argument)
	}
}
