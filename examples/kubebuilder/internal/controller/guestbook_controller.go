package controller

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	webappv1 "github.com/kopf-runtime/kopf-runtime/examples/kubebuilder/api/v1"
)

// GuestbookReconciler reconciles a Guestbook: its condition Moderated says whether it has moderators.
type GuestbookReconciler struct {
	client.Client
	Scheme *runtime.Scheme
}

// +kubebuilder:rbac:groups=webapp.example.org,resources=guestbooks,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=webapp.example.org,resources=guestbooks/status,verbs=get;patch

// Reconcile brings the status of one guestbook in line with its spec.
func (r *GuestbookReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var guestbook webappv1.Guestbook
	if err := r.Get(ctx, req.NamespacedName, &guestbook); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := guestbook.DeepCopy()
	if !meta.SetStatusCondition(&guestbook.Status.Conditions, moderated(&guestbook)) {
		return ctrl.Result{}, nil
	}
	if err := r.Status().Patch(
		ctx, &guestbook, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}),
	); err != nil {
		return ctrl.Result{}, fmt.Errorf("updating the status of guestbook %s: %w", req, err)
	}
	logf.FromContext(ctx).Info("Reconciled", "moderators", len(guestbook.Spec.Moderators))
	return ctrl.Result{}, nil
}

func moderated(guestbook *webappv1.Guestbook) metav1.Condition {
	condition := metav1.Condition{
		Type: "Moderated", Status: metav1.ConditionTrue, Reason: "HasModerators",
		ObservedGeneration: guestbook.Generation,
		Message: fmt.Sprintf(
			"%d moderators are asked before an entry is shown", len(guestbook.Spec.Moderators)),
	}
	if len(guestbook.Spec.Moderators) == 0 {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, "NoModerators",
			"entries are shown at once"
	}
	return condition
}

// SetupWithManager adds the reconciler to the manager.
func (r *GuestbookReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&webappv1.Guestbook{}).Named("guestbook").Complete(r)
}
