package main

import (
	"context"
	"encoding/json"
	"log"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// resizePeriod is how often a claim whose growth failed is tried again.
const resizePeriod = 10 * time.Second

// resizeLoop grows volumes whose claims ask for more. A folder has no size of its own, so all there is to do is to say so:
// in the volume's capacity first, then in the claim's status.
func resizeLoop(ctx context.Context, client kubernetes.Interface) {
	factory := informers.NewSharedInformerFactory(client, resizePeriod)
	_, err := factory.Core().V1().PersistentVolumeClaims().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { resize(ctx, client, object.(*v1.PersistentVolumeClaim)) },
		UpdateFunc: func(_, object any) { resize(ctx, client, object.(*v1.PersistentVolumeClaim)) },
	})
	if err != nil {
		log.Fatal(err)
	}
	factory.Start(ctx.Done())
}

func resize(ctx context.Context, client kubernetes.Interface, claim *v1.PersistentVolumeClaim) {
	wanted := claim.Spec.Resources.Requests[v1.ResourceStorage]
	if claim.Status.Phase != v1.ClaimBound || wanted.Cmp(claim.Status.Capacity[v1.ResourceStorage]) <= 0 {
		return
	}
	if err := grow(ctx, client, claim, wanted); err != nil {
		log.Printf("growing %s/%s to %s: %v", claim.Namespace, claim.Name, wanted.String(), err)
	}
}

func grow(ctx context.Context, client kubernetes.Interface, claim *v1.PersistentVolumeClaim, wanted resource.Quantity) error {
	volume, err := client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if volume.Annotations["pv.kubernetes.io/provisioned-by"] != provisionerName {
		return nil
	}
	capacity := map[string]string{string(v1.ResourceStorage): wanted.String()}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"capacity": capacity}})
	if err != nil {
		return err
	}
	if _, err := client.CoreV1().PersistentVolumes().Patch(ctx, volume.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return err
	}
	// Conditions that another controller set while it waited for the growth no longer hold.
	patch, err = json.Marshal(map[string]any{"status": map[string]any{"capacity": capacity, "conditions": nil}})
	if err != nil {
		return err
	}
	_, err = client.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(ctx, claim.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}
