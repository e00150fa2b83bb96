package devcluster_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/devcluster"
)

// TestShardSelector lists both halves of the objects in the formats of clients.
func TestShardSelector(t *testing.T) {
	t.Parallel()
	const objects = 40
	cases := map[string]struct {
		reason      string
		options     devcluster.Options
		contentType string
		want        int // the objects in both answers
	}{
		"JSON": {
			reason:      "both halves have all objects",
			contentType: "application/json", want: objects,
		},
		"Protobuf": {
			reason:      "protobuf does not change the selection",
			contentType: "application/vnd.kubernetes.protobuf", want: objects,
		},
		"Ignored": {
			reason:      "a cluster without the feature gate sends all objects twice",
			options:     devcluster.Options{IgnoreShardSelector: true},
			contentType: "application/json", want: 2 * objects,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster, _ := startCluster(t, tc.options)
			config := cluster.Config()
			config.ContentType = tc.contentType
			clients, err := kubernetes.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			for i := range objects {
				object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("s-", i)}}
				_, err := clients.CoreV1().Secrets("default").Create(t.Context(), object, metav1.CreateOptions{})
				if err != nil {
					t.Fatal(err)
				}
			}
			found := 0
			for _, bounds := range []string{
				"'0x0000000000000000', '0x8000000000000000'", "'0x8000000000000000', '0x10000000000000000'",
			} {
				var half corev1.SecretList
				err := clients.CoreV1().RESTClient().Get().Resource("secrets").Namespace("default").
					Param("shardSelector", "shardRange(object.metadata.uid, "+bounds+")").Do(t.Context()).Into(&half)
				if err != nil {
					t.Fatal(err)
				}
				found += len(half.Items)
			}
			if found != tc.want {
				t.Errorf("%s: got %d objects, want %d", tc.reason, found, tc.want)
			}
		})
	}
}
