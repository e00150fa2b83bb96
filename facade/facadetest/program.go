package facadetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// lastWords is what a process gets to say where it hangs, and what those get that hold its output open.
const lastWords = 10 * time.Second

// Build builds the program of a package, such as "./cmd/operator", and gives its path. It is removed with the test.
// What is wrong with the package ends the test here.
func Build(t testing.TB, pkg string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "operator")
	command := exec.CommandContext(t.Context(), "go", "build", "-o", program, pkg) //nolint:gosec // what the test says
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("facadetest: building %s: %v\n%s", pkg, err, out)
	}
	return program
}

// StartProgram starts an operator as a process: the path of a program, such as that of [Build], with its arguments by
// [Args]. What it writes to stdout and stderr is the output. It is stopped by SIGTERM, and killed if that does not
// help.
//
// # Errors
//
// Exit codes other than 0 are errors of the [Runner], which fail the test as those of [Start] do.
func StartProgram(t testing.TB, program string, options ...RunnerOption) *Runner {
	t.Helper()
	o := collect(options)
	command := exec.Command(program, o.args...) //nolint:gosec,noctx // what the test says; it is stopped by a signal
	command.Env = append(os.Environ(), o.env...)
	if o.settings.Config != nil {
		command.Env = append(command.Env, "KUBECONFIG="+kubeconfig(t, o.settings.Config))
	}
	r := newRunner(t, "the program "+program, o)
	command.Stdout, command.Stderr = r.output.stream(&r.output.out), r.output.stream(&r.output.errs)
	command.WaitDelay = lastWords
	r.ask = func() { _ = command.Process.Signal(syscall.SIGTERM) } // which has ended, or ends by it
	r.kill = func() { _ = command.Process.Kill() }                 // which has ended, or ends by it
	r.give = func() string { return r.quit(command.Process) }
	if err := command.Start(); err != nil {
		r.told = true
		r.ask = func() {}
		r.end(-1, err)
		t.Fatalf("facadetest: starting %s: %v", program, err)
	}
	go func() {
		err := command.Wait()
		r.end(command.ProcessState.ExitCode(), err)
	}()
	return r
}

// quit has a process of Go tell where it is, and kills it.
func (r *Runner) quit(process *os.Process) string {
	_ = process.Signal(syscall.SIGQUIT)
	timer := time.NewTimer(lastWords)
	defer timer.Stop()
	select {
	case <-r.ended:
	case <-timer.C:
		_ = process.Kill()
		<-r.ended
	}
	return "killed; its last words are at the end of its output, all goroutines if it is a program of Go"
}

// kubeconfig writes a file for a connection.
func kubeconfig(t testing.TB, config *rest.Config) string {
	t.Helper()
	if config.Transport != nil {
		t.Fatal("facadetest: a program cannot be connected to an API server in memory: use Start, or that of envtest")
	}
	const name = "test"
	file := clientcmdapi.NewConfig()
	file.Clusters[name] = &clientcmdapi.Cluster{
		Server: config.Host, CertificateAuthority: config.CAFile, CertificateAuthorityData: config.CAData,
		InsecureSkipTLSVerify: config.Insecure, TLSServerName: config.ServerName,
	}
	file.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificate: config.CertFile, ClientCertificateData: config.CertData,
		ClientKey: config.KeyFile, ClientKeyData: config.KeyData,
		Token: config.BearerToken, TokenFile: config.BearerTokenFile,
		Username: config.Username, Password: config.Password,
		Impersonate: config.Impersonate.UserName, ImpersonateGroups: config.Impersonate.Groups,
	}
	file.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	file.CurrentContext = name
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		t.Fatalf("facadetest: writing the connection for the program: %v", err)
	}
	return path
}
