// Command render prints the manifests of a kustomization, as kubectl kustomize does.
//
//	go run ./render ../../deploy/kubernetes/s3
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: render DIR")
		os.Exit(64) //nolint:forbidigo // exit status of the command
	}
	all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), os.Args[1])
	if err == nil {
		var b []byte
		if b, err = all.AsYaml(); err == nil {
			_, err = os.Stdout.Write(b)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1) //nolint:forbidigo // exit status of the command
	}
}
