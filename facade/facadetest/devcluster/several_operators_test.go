package devcluster_test

import (
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/devcluster"
)

// TestSeveralOperators shows that concurrent operators do not lose each other's changes, as each write requires the
// version that was read.
func TestSeveralOperators(t *testing.T) {
	t.Parallel()
	const operators, rounds = 5, 40
	cluster, _ := startCluster(t, devcluster.Options{})
	first := clientOf(t, cluster)
	_, err := first.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "count"}, Data: map[string]string{"n": "0"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	for range operators {
		maps := clientOf(t, cluster).CoreV1().ConfigMaps("default")
		running.Go(func() {
			for range rounds {
				err := increment(t, maps)
				for apierrors.IsConflict(err) {
					err = increment(t, maps)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	got, err := first.CoreV1().ConfigMaps("default").Get(t.Context(), "count", metav1.GetOptions{})
	if want := strconv.Itoa(operators * rounds); err != nil || got.Data["n"] != want {
		t.Errorf("the count is %v (%v), want %s", got.Data, err, want)
	}
}

// increment reads the count, and writes the next one.
func increment(t *testing.T, maps corev1client.ConfigMapInterface) error {
	t.Helper()
	current, err := maps.Get(t.Context(), "count", metav1.GetOptions{})
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(current.Data["n"])
	if err != nil {
		return err
	}
	current.Data["n"] = strconv.Itoa(n + 1)
	_, err = maps.Update(t.Context(), current, metav1.UpdateOptions{})
	return err
}
