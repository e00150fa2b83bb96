package main

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// sharedBy is the label of all that is made here: the uid of its share.
const sharedBy = "secrets.example.org/shared-by"

// target is one namespace, and what it shall have.
type target struct {
	namespace string
	spec      spec
	source    *corev1.Secret
}

// write has a sub-handler for each kind. The service accounts have to wait for the secret.
func (t target) write(ctx context.Context, c *Change) error {
	steps := []string{"secret", "config", "accounts"}
	c.Sub(steps[0], t.secret, patient)
	c.Sub(steps[1], t.config, patient)
	c.Sub(steps[2], t.accounts, patient, kopf.After("secret"))
	if err := c.RunSubs(ctx); err != nil {
		return err
	}
	for _, step := range steps {
		if outcome := c.Outcome(step); outcome.State == kopf.SubFailed {
			return kopf.Permanentf("%s: %s", step, outcome.Message)
		}
	}
	return nil
}

func (t target) secret(ctx context.Context, c *Change) error {
	there := &metav1.PartialObjectMetadata{}
	there.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := c.Client.Get(ctx, types.NamespacedName{Namespace: t.namespace, Name: t.spec.Source}, there)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil && there.Labels[sharedBy] != string(c.Object.GetUID()) {
		return kopf.Permanentf("there is another secret %s in namespace %s", t.spec.Source, t.namespace)
	}
	data := map[string][]byte{}
	for key, value := range t.spec.Literals {
		data[key] = []byte(value)
	}
	secret := applycorev1.Secret(t.spec.Source, t.namespace).WithLabels(t.labels(c)).
		WithType(t.source.Type).WithData(t.source.Data).WithData(data)
	if err := t.judge(c.Client.Apply(ctx, secret, client.ForceOwnership)); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Copied a secret", "target", t.namespace, "keys", len(secret.Data))
	return nil
}

// config has what everybody may know.
func (t target) config(ctx context.Context, c *Change) error {
	public := map[string]string{}
	for _, key := range t.spec.PublicKeys {
		if value, found := t.source.Data[key]; found {
			public[key] = string(value)
		}
	}
	config := applycorev1.ConfigMap(t.spec.Source, t.namespace).WithLabels(t.labels(c)).WithData(public)
	return t.judge(c.Client.Apply(ctx, config, client.ForceOwnership))
}

func (t target) accounts(ctx context.Context, c *Change) error {
	return t.patchAccounts(ctx, c, map[string]any{"name": t.spec.Source})
}

// patchAccounts merges something into the list of secrets to pull images with, which has names as keys.
func (t target) patchAccounts(ctx context.Context, c *Change, secret map[string]any) error {
	patch, err := json.Marshal(map[string]any{"imagePullSecrets": []any{secret}})
	if err != nil {
		return err
	}
	for _, name := range t.spec.ServiceAccounts {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: name}}
		if err := c.Client.Patch(ctx, account, client.RawPatch(types.StrategicMergePatchType, patch)); err != nil {
			return t.judge(err)
		}
	}
	return nil
}

// remove takes back all that write has made. What is gone already is fine.
func (t target) remove(ctx context.Context, c *Change) error {
	for _, kind := range []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}} {
		err := c.Client.DeleteAllOf(ctx, kind, client.InNamespace(t.namespace), client.MatchingLabels(t.labels(c)))
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	err := t.patchAccounts(ctx, c, map[string]any{"$patch": "delete", "name": t.spec.Source})
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	log.FromContext(ctx).Info("Removed a copy", "target", t.namespace)
	return nil
}

func (t target) labels(c *Change) map[string]string {
	return map[string]string{sharedBy: string(c.Object.GetUID())}
}

// judge says which errors of the API server pass.
func (t target) judge(err error) error {
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return kopf.Temporaryf(2*time.Second, "namespace %s is terminating", t.namespace)
	case apierrors.IsNotFound(err):
		return kopf.Temporaryf(2*time.Second, "waiting in namespace %s: %w", t.namespace, err)
	default:
		return err
	}
}
