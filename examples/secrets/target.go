package main

import (
	"context"
	"fmt"
	"slices"
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

// sharedByLabel is the label of all copies. Its value is the uid of the share.
const sharedByLabel = "secrets.example.org/shared-by"

// target is one namespace, with the data to be copied there.
type target struct {
	namespace string
	spec      spec
	source    *corev1.Secret
}

// write runs one sub-handler for each kind. The service accounts wait for the secret.
func (t target) write(ctx context.Context, c *Change) error {
	steps := []string{"secret", "config", "accounts"}
	c.Sub(steps[0], t.secret, retryPolicy)
	c.Sub(steps[1], t.config, retryPolicy)
	c.Sub(steps[2], t.accounts, retryPolicy, kopf.After("secret"))
	if err := c.RunSubs(ctx); err != nil {
		return err
	}
	for _, step := range steps {
		if outcome := c.Outcome(step); outcome.State == kopf.SubFailed {
			return kopf.Permanent(fmt.Errorf("%s: %s", step, outcome.Message))
		}
	}
	return nil
}

func (t target) secret(ctx context.Context, c *Change) error {
	if foreign, err := t.foreign(ctx, c); err != nil {
		return err
	} else if foreign {
		return kopf.Permanent(fmt.Errorf("there is another secret %s in namespace %s", t.spec.Source, t.namespace))
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

// config copies the public keys to a config map.
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

// foreign reports whether the namespace has a secret of that name that this share did not create.
func (t target) foreign(ctx context.Context, c *Change) (bool, error) {
	there := &metav1.PartialObjectMetadata{}
	there.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := c.Client.Get(ctx, types.NamespacedName{Namespace: t.namespace, Name: t.spec.Source}, there)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return there.Labels[sharedByLabel] != string(c.Object.GetUID()), nil
}

func (t target) accounts(ctx context.Context, c *Change) error {
	for _, name := range t.spec.ServiceAccounts {
		if err := t.judge(t.pull(ctx, c, name, true)); err != nil {
			return err
		}
	}
	return nil
}

// pull adds the secret to the image pull secrets of a service account, or removes it. It keeps the entries of other
// clients. As the API server treats the list as one value, pull reads it first; a concurrent write is a conflict, and
// the handler is retried.
func (t target) pull(ctx context.Context, c *Change, name string, wanted bool) error {
	account := &corev1.ServiceAccount{}
	if err := c.Client.Get(ctx, types.NamespacedName{Namespace: t.namespace, Name: name}, account); err != nil {
		return err
	}
	before, secret := account.DeepCopy(), corev1.LocalObjectReference{Name: t.spec.Source}
	if slices.Contains(account.ImagePullSecrets, secret) == wanted {
		return nil
	}
	isIt := func(other corev1.LocalObjectReference) bool { return other == secret }
	account.ImagePullSecrets = slices.DeleteFunc(account.ImagePullSecrets, isIt)
	if wanted {
		account.ImagePullSecrets = append(account.ImagePullSecrets, secret)
	}
	return c.Client.Patch(ctx, account, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// remove deletes all objects that write has created. Missing objects are ignored, and objects of other clients stay.
func (t target) remove(ctx context.Context, c *Change) error {
	foreign, err := t.foreign(ctx, c)
	if err != nil {
		return err
	}
	for _, name := range t.spec.ServiceAccounts {
		if foreign {
			break // they pull with a secret of another client
		}
		if err := client.IgnoreNotFound(t.pull(ctx, c, name, false)); err != nil {
			return err
		}
	}
	for _, kind := range []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}} {
		err := c.Client.DeleteAllOf(ctx, kind, client.InNamespace(t.namespace), client.MatchingLabels(t.labels(c)))
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	log.FromContext(ctx).Info("Removed a copy", "target", t.namespace)
	return nil
}

func (t target) labels(c *Change) map[string]string {
	return map[string]string{sharedByLabel: string(c.Object.GetUID())}
}

// judge makes those errors of the API server temporary that go away by themselves.
func (t target) judge(err error) error {
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return kopf.Temporary(fmt.Errorf("namespace %s is terminating", t.namespace), 2*time.Second)
	case apierrors.IsNotFound(err):
		return kopf.Temporary(fmt.Errorf("waiting in namespace %s: %w", t.namespace, err), 2*time.Second)
	default:
		return err
	}
}
