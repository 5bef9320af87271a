package main

import (
	"context"

	"go.uber.org/zap/zapcore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	ownerLabel   = "bench.moorage.dev/widget"
	fieldManager = "controller-runtime"
	zapErrors    = zapcore.ErrorLevel
)

type keeper struct{ client.Client }

// Reconcile makes the ConfigMap right, then the status. Each is written only when the cache says that it is wrong.
func (k *keeper) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var widget Widget
	if err := k.Get(ctx, request.NamespacedName, &widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !widget.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	if err := k.keepChild(ctx, &widget); err != nil {
		return ctrl.Result{}, err
	}
	if !settle(&widget) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, k.Status().Update(ctx, &widget)
}

// settle says in the status that all is as wanted; whether that is news.
func settle(widget *Widget) bool {
	status := &widget.Status
	news := status.ObservedGeneration != widget.Generation || status.Text != widget.Spec.Text
	status.ObservedGeneration, status.Text = widget.Generation, widget.Spec.Text
	for _, it := range []metav1.Condition{
		{Type: "Available", Status: metav1.ConditionTrue, Reason: "Present"},
		{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready", Message: "all steps are done"},
		{Type: "Reconciling", Status: metav1.ConditionFalse, Reason: "Settled"},
		{Type: "Stalled", Status: metav1.ConditionFalse, Reason: "Settled"},
	} {
		it.ObservedGeneration = widget.Generation
		news = meta.SetStatusCondition(&status.Conditions, it) || news
	}
	return news
}

func (k *keeper) keepChild(ctx context.Context, widget *Widget) error {
	name := types.NamespacedName{Namespace: widget.Namespace, Name: widget.Name + "-widget"}
	var child corev1.ConfigMap
	err := k.Get(ctx, name, &child)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil && child.Data["text"] == widget.Spec.Text && isOwned(&child, widget) {
		return nil
	}
	owner := metav1apply.OwnerReference().
		WithAPIVersion(groupVersion.String()).WithKind("Widget").
		WithName(widget.Name).WithUID(widget.UID).WithController(true)
	return k.Apply(ctx, corev1apply.ConfigMap(name.Name, name.Namespace).
		WithLabels(map[string]string{ownerLabel: widget.Name}).
		WithOwnerReferences(owner).
		WithData(map[string]string{"text": widget.Spec.Text}),
		client.FieldOwner(fieldManager), client.ForceOwnership)
}

func isOwned(child *corev1.ConfigMap, widget *Widget) bool {
	for _, owner := range child.OwnerReferences {
		if owner.UID == widget.UID {
			return true
		}
	}
	return false
}
