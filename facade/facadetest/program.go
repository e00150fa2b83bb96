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

// stackDumpTimeout is the time in which a stuck process can print its goroutines after SIGQUIT. It also limits the wait
// for child processes that keep the output open after the program has ended.
const stackDumpTimeout = 10 * time.Second

// Build builds the program of a package, such as "./cmd/operator", and returns its path. The file is removed at the end
// of the test. A build error ends the test.
func Build(t testing.TB, pkg string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "operator")
	command := exec.CommandContext(t.Context(), "go", "build", "-o", program, pkg) //nolint:gosec // what the test says
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("facadetest: building %s: %v\n%s", pkg, err, out)
	}
	return program
}

// StartProgram starts an operator as a process: the program at the path, such as the result of [Build], with the
// arguments of [Args]. Its output is stdout and stderr. The process is stopped by SIGTERM, and killed if it does not
// end in time.
//
// # Errors
//
// An exit code other than 0 is an error of the [Runner], and fails the test like an error of [Start].
func StartProgram(t testing.TB, program string, options ...RunnerOption) *Runner {
	t.Helper()
	o := collectOptions(options)
	command := exec.Command(program, o.args...) //nolint:gosec,noctx // what the test says; it is stopped by a signal
	command.Env = append(os.Environ(), o.env...)
	if o.settings.Config != nil {
		command.Env = append(command.Env, "KUBECONFIG="+writeKubeconfig(t, o.settings.Config))
	}
	r := newRunner(t, "the program "+program, o)
	command.Stdout, command.Stderr = r.output.streamWriter(&r.output.stdout), r.output.streamWriter(&r.output.stderr)
	command.WaitDelay = stackDumpTimeout
	// Errors of the signals are ignored: the process has ended already.
	r.requestStop = func() { _ = command.Process.Signal(syscall.SIGTERM) }
	r.kill = func() { _ = command.Process.Kill() }
	r.describeStuck = func() string { return r.killWithStacks(command.Process) }
	// The runner must end here, as its cleanup waits for the end. It must not report the error a second time.
	if err := command.Start(); err != nil {
		r.isErrorReported = true
		r.requestStop = func() {}
		r.recordEnd(-1, err)
		t.Fatalf("facadetest: starting %s: %v", program, err)
	}
	go func() {
		err := command.Wait()
		r.recordEnd(command.ProcessState.ExitCode(), err)
	}()
	return r
}

// killWithStacks sends SIGQUIT, so that a Go program prints its goroutines, and kills the process if it still runs
// after that.
func (r *Runner) killWithStacks(process *os.Process) string {
	_ = process.Signal(syscall.SIGQUIT)
	timer := time.NewTimer(stackDumpTimeout)
	defer timer.Stop()
	select {
	case <-r.ended:
	case <-timer.C:
		_ = process.Kill()
		<-r.ended
	}
	return "killed; its last words are at the end of its output, all goroutines if it is a program of Go"
}

// writeKubeconfig writes a kubeconfig file for the connection and returns its path. The file is removed at the end of
// the test.
func writeKubeconfig(t testing.TB, config *rest.Config) string {
	t.Helper()
	// A transport is a Go value of this process, such as the API server in memory.
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
