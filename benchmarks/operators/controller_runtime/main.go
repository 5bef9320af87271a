// The benchmark's Widget operator on controller-runtime: a Widget owns one ConfigMap, and its status says what was done.
package main

import (
	"context"
	"flag"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

type settings struct {
	kubeconfig, namespace string
	resync                time.Duration
	workers               int
	wide, consistent      bool
}

func main() {
	var given settings
	var seconds float64
	// A set of its own: controller-runtime has put its flags into the common one.
	flags := flag.NewFlagSet(os.Args[0], flag.ExitOnError)
	flags.StringVar(&given.kubeconfig, "kubeconfig", "", "how to reach the API server")
	flags.StringVar(&given.namespace, "namespace", "", "where Widgets are looked after")
	flags.Float64Var(&seconds, "resync", 36000, "seconds between two looks at a settled object")
	flags.IntVar(&given.workers, "workers", 16, "reconciles at a time")
	flags.BoolVar(&given.wide, "wide", false, "ten watches and a lease")
	flags.BoolVar(&given.consistent, "read-your-writes", false, "EnableReadYourWritesConsistency")
	_ = flags.Parse(os.Args[1:])
	given.resync = time.Duration(seconds * float64(time.Second))
	ctrl.SetLogger(zap.New(zap.Level(zapErrors)))
	if err := run(ctrl.SetupSignalHandler(), given); err != nil {
		ctrl.Log.Error(err, "operator ended")
		os.Exit(1)
	}
}

func run(ctx context.Context, given settings) error {
	config, err := clientcmd.BuildConfigFromFlags("", given.kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1 // no limit of the client's own: the server's fairness is enough, and the others have none
	mgr, err := newManager(config, given)
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(mgr).
		For(&Widget{}).
		Owns(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: given.workers}).
		Complete(&keeper{mgr.GetClient()})
	if err != nil {
		return err
	}
	if given.wide {
		for _, kind := range others {
			if _, err := mgr.GetCache().GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
				return err
			}
		}
	}
	return mgr.Start(ctx)
}

func newManager(config *rest.Config, given settings) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	addWidgets(scheme)
	owned, err := labels.NewRequirement(ownerLabel, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	return ctrl.NewManager(config, ctrl.Options{
		Scheme:                  scheme,
		Metrics:                 metrics.Options{BindAddress: "0"},
		LeaderElection:          given.wide,
		LeaderElectionID:        "controller-runtime",
		LeaderElectionNamespace: given.namespace,
		Cache: cache.Options{
			SyncPeriod:        &given.resync,
			DefaultNamespaces: map[string]cache.Config{given.namespace: {}},
			ByObject: map[client.Object]cache.ByObject{
				&corev1.ConfigMap{}: {Label: labels.NewSelector().Add(*owned)},
			},
		},
		Client: client.Options{
			Cache: &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(given.consistent)},
		},
	})
}

// Eight kinds that are watched beside the Widget's two, to see what idle watches cost.
var others = []client.Object{
	&appsv1.Deployment{},
	&appsv1.StatefulSet{},
	&appsv1.DaemonSet{},
	&batchv1.Job{},
	&batchv1.CronJob{},
	&corev1.Service{},
	&corev1.Secret{},
	&policyv1.PodDisruptionBudget{},
}
