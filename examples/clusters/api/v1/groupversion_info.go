package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of all types of this package.
var GroupVersion = schema.GroupVersion{Group: "clusters.example.org", Version: "v1"}

// The labels and annotations that the operator sets and reads.
const (
	// LabelCluster names the cluster that a namespace or a node belongs to.
	LabelCluster = "clusters.example.org/cluster"
	// LabelPool names the pool of a node.
	LabelPool = "clusters.example.org/pool"
	// LabelPaused keeps the handlers in the background from a cluster.
	LabelPaused = "clusters.example.org/paused"
	// AnnotationBackup has a cluster backed up, if it is "enabled".
	AnnotationBackup = "clusters.example.org/backup"
)

// AddToScheme adds the types to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Cluster{}, &ClusterList{}, &NodePool{}, &NodePoolList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
