// Command kubernetes holds every component of a Kubernetes control plane and node, etcd included, in one
// binary. The first argument names the component; what follows are that component's own flags.
package main

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"

	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"

	kubeapiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kubecontrollermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	kubeproxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	kubescheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// components maps a name to the constructor of its command. A constructor installs the signal handler of the
// process, or has it installed when run, and that may happen once only: none is called but the chosen one.
var components = map[string]func() *cobra.Command{
	"kube-apiserver":          kubeapiserver.NewAPIServerCommand,
	"kube-controller-manager": kubecontrollermanager.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return kubescheduler.NewSchedulerCommand() },
	"kube-proxy":              kubeproxy.NewProxyCommand,
	"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
}

func main() {
	if name := base(os.Args[0]); name == "kubectl" {
		runKubectl()
		return
	}
	if len(os.Args) < 2 {
		usage()
	}
	name := os.Args[1]
	// Each component reads os.Args itself and expects its own name first.
	os.Args = os.Args[1:]
	switch construct, known := components[name]; {
	case name == "etcd":
		etcdmain.Main(os.Args)
	case name == "kubectl":
		runKubectl()
	case known:
		os.Exit(cli.Run(construct()))
	default:
		usage()
	}
}

func base(path string) string {
	return path[strings.LastIndexByte(path, '/')+1:]
}

func runKubectl() {
	logs.GlogSetter(kubectl.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}

func usage() {
	names := []string{"etcd", "kubectl"}
	for name := range components {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Fprintf(os.Stderr, "usage: kubernetes COMPONENT [flags]\ncomponents: %s\n", strings.Join(names, ", "))
	os.Exit(2)
}
