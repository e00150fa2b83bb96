// Not part of the public API.
//
// Package clients tests the development cluster with real clients: kubectl of three minor versions, helm, client-go,
// controller-runtime, the Python client and Kopf itself. It contains tests only, which need external binaries. With
// kubectl and helm, it also tests the manifests that operators print.
//
// Each test plays one table of calls against the development cluster and against kube-apiserver, with the same
// expectations. The binaries of kube-apiserver are in the folder of KUBEBUILDER_ASSETS, which the make target
// test-envtest sets. Kubectl and helm are built once, from the versions in testdata. Tests in Python are skipped with a
// message if python3 with venv is missing.
//
// TestExamplesOfKopf runs Kopf's own tests of its 18 examples, which takes some minutes on an idle machine. It is
// skipped without the sources of Kopf:
//
//	git clone --branch 1.44.6 https://github.com/nolar/kopf /tmp/kopf
//	python3 -m venv /tmp/kopf/.venv
//	cd /tmp/kopf && .venv/bin/pip install --upgrade pip && .venv/bin/pip install pykube-ng --group test -e .
//	KOPF_SOURCES=/tmp/kopf make test-envtest
package clients
