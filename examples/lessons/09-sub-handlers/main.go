// Command 09-sub-handlers uploads each page of a site on its own.
package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// Change is one change of one ConfigMap, which has the pages of a site.
type Change = kopf.Change[*corev1.ConfigMap]

func main() {
	op := newOperator()
	kopf.Main(op)
}

func newOperator() *kopf.Operator {
	op := kopf.New("sites.example.org")
	sites := kopf.For(op, &corev1.ConfigMap{}).MatchingLabels("site")
	sites.OnCreate("upload", upload)
	return op
}

// upload declares one sub-handler for each page, and one that runs after them. It is called again until all of them
// have finished.
func upload(_ context.Context, c *Change) error {
	pages := slices.Sorted(maps.Keys(c.Object.Data))
	for _, page := range pages {
		c.Sub(page, uploadPage(page), kopf.Retries(3))
	}
	c.Sub("report", report(c, pages), kopf.AfterFinished(pages...))
	return nil
}

// uploadPage returns a function for one page. The first upload of the page "news" fails.
func uploadPage(page string) kopf.ChangeFunc[*corev1.ConfigMap] {
	return func(ctx context.Context, c *Change) error {
		if page == "news" && c.Retry == 0 {
			return kopf.Temporary(errors.New("the disk is full"), 10*time.Second)
		}
		log.FromContext(ctx).Info("Uploaded", "page", page)
		return nil
	}
}

// report reads the outcomes of the other sub-handlers from the change of their handler.
func report(of *Change, pages []string) kopf.ChangeFunc[*corev1.ConfigMap] {
	return func(ctx context.Context, _ *Change) error {
		for _, page := range pages {
			log.FromContext(ctx).Info("Report", "page", page, "state", of.Outcome(page).State)
		}
		return nil
	}
}
