module github.com/kopf-runtime/kopf-runtime/test/controlplane

go 1.26.0
