// Command ephemeral-volume-claim keeps a PersistentVolumeClaim for each EphemeralVolumeClaim. The claim has the size
// and the labels of its owner. It is deleted with its owner, when pods do not use it any more.
package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// Change is one change of an EphemeralVolumeClaim. The kind does not have a Go type.
type Change = kopf.Change[*kopf.Unstructured]

func main() {
	op := newOperator()
	kopf.Main(op)
}

func newOperator() *kopf.Operator {
	op := kopf.New("evc.kopf.dev")
	owners := kopf.ForResource(op, "ephemeralvolumeclaims.kopf.dev")
	owners.OnCreate("claim", claim)
	owners.OnUpdate("resize", resize, kopf.InField("spec.size"))
	owners.OnUpdate("relabel", relabel, kopf.InField("metadata.labels"))
	owners.OnDelete("release", release)

	owners.Owns(&corev1.PersistentVolumeClaim{})
	kopf.OnChild(owners, "report", report)

	kopf.For(op, &corev1.PersistentVolumeClaim{}).When(isPretended).On("bind", kopf.CreateUpdateResume(), bind)

	// The request of release by Client, for the command manifests.
	op.Needs(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}})
	return op
}

// claim creates the volume claim. Its result is stored in the status, where the other handlers find the name.
func claim(ctx context.Context, c *Change) error {
	size, err := sizeOf(c.Object)
	if err != nil {
		return err
	}
	child := &corev1.PersistentVolumeClaim{}
	child.Name = c.Object.GetName()
	child.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	child.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: size}
	if class := kopf.GetFieldOr(c.Object, "spec.storageClassName", ""); class != "" {
		child.Spec.StorageClassName = ptr.To(class)
	}
	if err := c.Adopt(child); err != nil {
		return err
	}
	if err := c.Client.Create(ctx, child); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	log.FromContext(ctx).Info("Claimed a volume", "claim", child.Name, "size", size.String())
	c.SetResult(child.Name)
	return nil
}

// resize is called when the size has changed. It compares with the claim: a refused size is in c.Old the next time.
func resize(ctx context.Context, c *Change) error {
	size, err := sizeOf(c.Object)
	if err != nil {
		return err
	}
	return change(ctx, c, func(child *corev1.PersistentVolumeClaim) error {
		before := child.Spec.Resources.Requests[corev1.ResourceStorage]
		if size.Cmp(before) < 0 {
			c.Warn("ShrinkingRefused", "The volume keeps its "+before.String())
			return kopf.Permanent(fmt.Errorf("a volume of %s cannot shrink to %s", before.String(), size.String()))
		}
		child.Spec.Resources.Requests[corev1.ResourceStorage] = size
		log.FromContext(ctx).Info("Resized", "claim", child.Name, "size", size.String())
		return nil
	})
}

// relabel copies added, changed and removed labels. Other labels of the claim stay.
func relabel(ctx context.Context, c *Change) error {
	before, after := kopf.FieldChange[map[string]string](c)
	return change(ctx, c, func(child *corev1.PersistentVolumeClaim) error {
		for key := range ptr.Deref(before, nil) {
			delete(child.Labels, key)
		}
		for key, value := range ptr.Deref(after, nil) {
			metav1.SetMetaDataLabel(&child.ObjectMeta, key, value)
		}
		log.FromContext(ctx).Info("Relabelled", "claim", child.Name, "labels", child.Labels)
		return nil
	})
}

// change patches the fields of the claim that the function edits.
func change(ctx context.Context, c *Change, edit func(child *corev1.PersistentVolumeClaim) error) error {
	name, err := kopf.Result[string](c, "claim")
	if err != nil {
		return kopf.Temporary(err, time.Second)
	}
	child := &corev1.PersistentVolumeClaim{}
	key := client.ObjectKey{Namespace: c.Object.GetNamespace(), Name: name}
	if err := c.Client.Get(ctx, key, child); err != nil {
		return err
	}
	before := child.DeepCopy()
	if err := edit(child); err != nil {
		return err
	}
	return c.Client.Patch(ctx, child, client.MergeFrom(before))
}
