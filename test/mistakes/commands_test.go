package mistakes_test

// command is a mistake on the command line: the operator does not start.
type command struct {
	name string
	args []string
}

var commands = []command{
	{"One namespace and all", []string{"-n", "demo", "-A"}},
	{"A namespace that cannot be", []string{"-n", "team_a"}},
	{"No namespace, for all of them", []string{"-n", ""}},
	{"Namespaces with a comma between them", []string{"-n", "demo,test"}},
	{"A bracket that is not closed", []string{"-n", "demo-[ab"}},
	{"Quiet and verbose", []string{"--quiet", "--verbose"}},
	{"A log format that there is not", []string{"--log-format", "xml"}},
	{"A flag that there is not", []string{"--namespaces", "demo"}},
	{"A file, as to kopf run", []string{"run", "handlers.py"}},
	{"A module, as to kopf run", []string{"-m", "handlers"}},
	{"A priority that is not a number", []string{"-A", "-p", "high"}},
	{"A freeze without a peering object", []string{"freeze", "-A", "-t", "600"}},
	{"A freeze without an end", []string{"freeze", "-A", "-P", "default"}},
	{"A command that there is not", []string{"rum"}},
	{"A shell that there is not", []string{"completion", "xsh"}},
	{"A kubeconfig that there is not", []string{"-A", "--kubeconfig", "missing.yaml"}},
}
