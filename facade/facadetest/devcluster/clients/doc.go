// Not part of the public API.
//
// Package clients tests the development cluster with real clients: kubectl of three minor versions, helm, client-go,
// controller-runtime, the Python client and genuine Kopf. It has no code; its tests need binaries.
//
// Each test has one table of calls. It is played against the development cluster and against kube-apiserver, with the
// same expectations. The binaries of kube-apiserver come from the folder in KUBEBUILDER_ASSETS, which the target
// test-envtest of make sets; kubectl and helm are built from the versions in testdata, once. Tests in Python are
// skipped with a message if there is no python3 with venv.
//
// TestExamplesOfKopf runs Kopf's own tests of its 18 examples, which take some minutes on a quiet machine. It is
// skipped without the sources of Kopf:
//
//	git clone --branch 1.44.6 https://github.com/nolar/kopf /tmp/kopf
//	python3 -m venv /tmp/kopf/.venv
//	cd /tmp/kopf && .venv/bin/pip install --upgrade pip && .venv/bin/pip install pykube-ng --group test -e .
//	KOPF_SOURCES=/tmp/kopf make test-envtest
package clients
