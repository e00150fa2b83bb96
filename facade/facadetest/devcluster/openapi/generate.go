//go:build ignore

// Command generate writes kubernetes.json.gz: the OpenAPI document of Kubernetes, reduced to the resources that the
// development cluster serves and the definitions that they refer to. To use another version of Kubernetes, change the
// constant and run "go generate ." in the parent folder.
package main

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/discovery"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/devcluster"
)

// kubernetes is the module that contains the document.
const kubernetes = "k8s.io/kubernetes@v1.36.3"

func main() {
	if err := generate(); err != nil {
		log.Fatal(err)
	}
}

// generate reads, reduces and writes the document.
func generate() error {
	served, err := servedResources()
	if err != nil {
		return err
	}
	document, err := read()
	if err != nil {
		// The document describes all of Kubernetes; only paths of served resources are kept.
		return err
	}
	parameters := document["parameters"].(map[string]any)
	kept := map[string]any{}
	for path, item := range document["paths"].(map[string]any) {
		if served[resourceOf(path)] {
			kept[path] = inlined(item, parameters)
		}
	}
	definitions := document["definitions"].(map[string]any)
	for _, name := range []string{"swagger", "info", "definitions"} {
		if document[name] == nil {
			return errors.New("the document has no " + name)
		}
	}
	// Definitions are collected last, because they depend on the remaining paths.
	reached := map[string]any{}
	reach(kept, definitions, reached)
	return write(map[string]any{
		"swagger": document["swagger"], "info": document["info"], "paths": kept, "definitions": reached,
	})
}

// servedResources returns the resources that a development cluster serves, such as "apps/v1/deployments".
func servedResources() (map[string]bool, error) {
	ctx, cancel := context.WithCancel(context.Background())
	cluster, err := devcluster.Start(ctx, devcluster.Options{})
	if err != nil {
		cancel()
		return nil, err
	}
	defer func() { cancel(); _ = cluster.Wait() }()
	client, err := discovery.NewDiscoveryClientForConfig(cluster.Config())
	if err != nil {
		return nil, err
	}
	_, lists, err := client.ServerGroupsAndResources()
	served := map[string]bool{}
	for _, list := range lists {
		for _, r := range list.APIResources {
			served[list.GroupVersion+"/"+r.Name] = true
		}
	}
	// Discovery does not list this virtual subresource.
	served["v1/serviceaccounts/token"] = true
	return served, err
}

// read downloads the module and returns the document in it.
func read() (map[string]any, error) {
	var module struct{ Dir string }
	// The module is downloaded with its sources, which include the document.
	cmd := exec.Command("go", "mod", "download", "-json", kubernetes)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &module)
	}
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(module.Dir, "api", "openapi-spec", "swagger.json"))
	if err != nil {
		return nil, err
	}
	var document map[string]any
	return document, json.Unmarshal(data, &document)
}

// resourceOf converts /apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale to apps/v1/deployments/scale.
func resourceOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[1:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = append([]string{parts[1] + "/" + parts[2]}, parts[3:]...)
	default:
		return ""
	}
	// A namespaced path and a cluster-wide path belong to the same resource.
	if len(parts) > 3 && parts[1] == "namespaces" && parts[2] == "{namespace}" {
		parts = append(parts[:1], parts[3:]...)
	}
	var all []string
	for _, part := range parts {
		if !strings.HasPrefix(part, "{") {
			all = append(all, part)
		}
	}
	return strings.Join(all, "/")
}

// inlined replaces references to shared parameters, because the conversion to OpenAPI 3 does not resolve them.
func inlined(value any, parameters map[string]any) any {
	switch value := value.(type) {
	case map[string]any:
		if ref, ok := value["$ref"].(string); ok && strings.HasPrefix(ref, "#/parameters/") {
			return parameters[strings.TrimPrefix(ref, "#/parameters/")]
		}
		for name, one := range value {
			value[name] = inlined(one, parameters)
		}
	case []any:
		for i, one := range value {
			value[i] = inlined(one, parameters)
		}
	}
	return value
}

// reach collects the definitions that a value refers to, directly or indirectly.
func reach(value any, definitions, reached map[string]any) {
	switch value := value.(type) {
	case map[string]any:
		// Recursive definitions are visited once.
		if ref, ok := value["$ref"].(string); ok {
			name := strings.TrimPrefix(ref, "#/definitions/")
			if reached[name] == nil && definitions[name] != nil {
				reached[name] = definitions[name]
				reach(definitions[name], definitions, reached)
			}
		}
		for _, one := range value {
			reach(one, definitions, reached)
		}
	case []any:
		for _, one := range value {
			reach(one, definitions, reached)
		}
	}
}

// write writes the compressed document.
func write(document map[string]any) error {
	file, err := os.Create("openapi/kubernetes.json.gz")
	if err != nil {
		return err
	}
	zip, err := gzip.NewWriterLevel(file, gzip.BestCompression)
	if err == nil {
		err = json.NewEncoder(zip).Encode(document) // keys are sorted, so the file is reproducible
	}
	if err == nil {
		// Close writes the rest of the compressed data, so its error matters.
		err = zip.Close()
	}
	return errors.Join(err, file.Close())
}
