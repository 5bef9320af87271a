// Command provisioner gives each PersistentVolumeClaim of its storage class a folder on the node, open to every
// user, takes it away with the claim, and lets it grow.
package main

import (
	"context"
	"flag"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

const provisionerName = "testbed.local/host-path"

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	directory := flag.String("directory", "", "the folder that holds the volumes")
	listen := flag.String("listen", "", "the address of the health endpoint")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *directory, *listen); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, kubeconfig, directory, listen string) error {
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctrl := controller.NewProvisionController(ctx, client, provisionerName, &folders{root: directory}, controller.LeaderElection(false))
	go serveHealth(listen, ctrl)
	go resizeLoop(ctx, client)
	ctrl.Run(ctx)
	return nil
}

// serveHealth answers 200 from the moment that the controller runs.
func serveHealth(address string, ctrl *controller.ProvisionController) {
	log.Fatal(http.ListenAndServe(address, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !ctrl.HasRun() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})))
}
