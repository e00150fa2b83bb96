package clients_test

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/devcluster"
)

// helmCommands returns the calls of helm. The first ones work without hooks and waits, which need controllers or
// PretendReady.
func helmCommands() []command {
	const settings = "get configmap plain-settings -n charts -o jsonpath={.data.color}"
	return []command{
		{name: "Version", line: "version --short", want: `^v3\.`},
		{name: "Lint", line: "lint testdata/chart", want: "1 chart.s. linted, 0 chart.s. failed"},
		{name: "DryRun", line: "install plain testdata/chart -n charts --create-namespace --dry-run=server",
			want: "ensure CRDs are installed first", mustFail: true},
		{name: "Install", line: "install plain testdata/chart -n charts --create-namespace --no-hooks",
			want: "STATUS: deployed\nREVISION: 1"},
		{name: "InstallAgain", line: "install plain testdata/chart -n charts", want: "cannot re-use a name",
			mustFail: true},
		{name: "List", line: "list -n charts", want: `plain\s+charts\s+1\s.*deployed\s+web-1\.0\.0`},
		{name: "ListAll", line: "list -A", want: `plain\s+charts`},
		{name: "Status", line: "status plain -n charts", want: "STATUS: deployed"},
		{name: "Manifest", line: "get manifest plain -n charts", want: "name: plain-gadget"},
		{name: "Defined", line: "get gadgets plain-gadget -n charts -o jsonpath={.spec.color}", want: "^green$",
			isShownByKubectl: true},
		{name: "Upgrade", line: "upgrade plain testdata/chart -n charts --no-hooks --set color=blue",
			want: "STATUS: deployed\nREVISION: 2"},
		{name: "Upgraded", line: settings, want: "^blue$", isShownByKubectl: true},
		{name: "UpgradedDeployment", line: "get deployment plain -n charts -o jsonpath=" +
			"{.spec.template.spec.containers[*].env[*].value}", want: "^blue$", isShownByKubectl: true},
		{name: "Values", line: "get values plain -n charts", want: "color: blue"},
		{name: "History", line: "history plain -n charts", want: `1\s.*superseded(.|\n)*2\s.*deployed`},
		{name: "Rollback", line: "rollback plain 1 -n charts --no-hooks", want: "Rollback was a success"},
		{name: "RolledBack", line: settings, want: "^green$", isShownByKubectl: true},
		{name: "Uninstall", line: "uninstall plain -n charts --no-hooks", want: `release "plain" uninstalled`},
		{name: "Uninstalled", line: settings, want: "NotFound", mustFail: true, isShownByKubectl: true},
		{name: "UpgradeInstall", skipReason: noControllers, want: "STATUS: deployed\nREVISION: 1",
			line: "upgrade --install full testdata/chart -n charts --wait --wait-for-jobs --timeout 2m"},
		{name: "Ready", skipReason: noControllers, line: "get deployment full -n charts", want: `full +2/2 +2 +2`,
			isShownByKubectl: true},
		{name: "HookCompleted", skipReason: noControllers, line: "get job full-pre-install -n charts",
			isShownByKubectl: true,
			want:             `full-pre-install +Complete +1/1`},
		{name: "UpgradeAtomic", skipReason: noControllers, want: "REVISION: 2",
			line: "upgrade full testdata/chart -n charts --atomic --timeout 2m --set color=red"},
		{name: "Test", skipReason: noControllers, line: "test full -n charts", want: `Phase:\s+Succeeded`},
		{name: "RollbackWaits", skipReason: noControllers, line: "rollback full 1 -n charts --wait --timeout 2m",
			want: "Rollback was a success"},
		{name: "UninstallWaits", skipReason: noControllers, line: "uninstall full -n charts --wait --timeout 2m",
			want: `release "full" uninstalled`},
	}
}

func TestHelm(t *testing.T) {
	program := build(t, "helm", "go.mod", "helm.sh/helm/v3/cmd/helm", "helm")
	onBoth(t, devcluster.Options{PretendReady: true}, func(t *testing.T, c cluster) {
		play(t, program, c, helmCommands())
	})
}
