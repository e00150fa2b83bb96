//go:build ignore

// Command pin rewrites the go.mod and go.sum of the builds for the versions in the package assets. To move to another
// version: change the constants there, then run "go generate ./assets" in this module.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/test/controlplane/assets"
)

// modFile contains the needed fields of the output of "go mod edit -json".
type modFile struct {
	Go      string
	Replace []struct {
		Old, New struct{ Path, Version string }
	}
}

func main() {
	if err := pinEtcd(); err != nil {
		log.Fatal(err)
	}
	if err := pinKubernetes(); err != nil {
		log.Fatal(err)
	}
}

func pinEtcd() error {
	const module = "go.etcd.io/etcd/server/v3"
	upstream, err := upstreamModFile(module, assets.EtcdVersion)
	if err != nil {
		return err
	}
	return pin("etcd", upstream.Go, module, assets.EtcdVersion, nil, module)
}

func pinKubernetes() error {
	const module = "k8s.io/kubernetes"
	upstream, err := upstreamModFile(module, assets.KubernetesVersion)
	if err != nil {
		return err
	}
	// Inside its repository Kubernetes takes its libraries from a folder; published, they are v0 of the same number.
	published := "v0" + assets.KubernetesVersion[strings.IndexByte(assets.KubernetesVersion, '.'):]
	var replaces []string
	for _, r := range upstream.Replace {
		if strings.HasPrefix(r.New.Path, "./staging/") {
			replaces = append(replaces, fmt.Sprintf("\t%s => %s %s\n", r.Old.Path, r.Old.Path, published))
		}
	}
	return pin("kubernetes", upstream.Go, module, assets.KubernetesVersion, replaces,
		module+"/cmd/kube-apiserver", module+"/cmd/kube-controller-manager", module+"/cmd/kubectl")
}

func upstreamModFile(module, version string) (modFile, error) {
	var download struct{ GoMod string }
	var file modFile
	if err := ask(&download, "", "mod", "download", "-json", module+"@v"+version); err != nil {
		return file, err
	}
	return file, ask(&file, "", "mod", "edit", "-json", download.GoMod)
}

// pin lets "go mod tidy" complete a module that imports the programs, and keeps its two files.
func pin(name, language, module, version string, replaces []string, packages ...string) error {
	dir, err := os.MkdirTemp("", "pin-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	mod := fmt.Sprintf("module build.local/%s\n\ngo %s\n\nrequire %s v%s\n", name, language, module, version)
	if len(replaces) > 0 {
		mod += "\nreplace (\n" + strings.Join(replaces, "") + ")\n"
	}
	imports := "//go:build tools\n\npackage tools\n"
	for _, p := range packages {
		imports += fmt.Sprintf("\nimport _ %q\n", p)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "tools.go"), []byte(imports), 0o644); err != nil {
		return err
	}
	if err := ask(nil, dir, "mod", "tidy"); err != nil {
		return err
	}
	for _, ending := range []string{"mod", "sum"} {
		data, err := os.ReadFile(filepath.Join(dir, "go."+ending))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join("modules", name+"."+ending), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// ask runs the Go command outside of any workspace and decodes its answer.
func ask(into any, dir string, args ...string) error {
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(bytes.NewReader(out)).Decode(into)
}
