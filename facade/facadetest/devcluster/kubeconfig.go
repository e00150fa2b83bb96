package devcluster

import (
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// clusterName is the name of the cluster, the user and the context in the kubeconfig file.
const clusterName = "devcluster"

// writeKubeconfig writes the kubeconfig file. Its token gives all permissions on the cluster, so the file is readable
// for its owner only.
func (c *Cluster) writeKubeconfig() error {
	data, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{clusterName: {
			Server: c.config.Host, CertificateAuthorityData: c.config.CAData,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{clusterName: {Token: c.config.BearerToken}},
		Contexts: map[string]*clientcmdapi.Context{clusterName: {
			Cluster: clusterName, AuthInfo: clusterName, Namespace: "default",
		}},
		CurrentContext: clusterName,
	})
	if err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	if c.kubeconfig = c.options.Kubeconfig; c.kubeconfig != "" {
		if c.kubeconfig, err = filepath.Abs(c.kubeconfig); err == nil { // programs may run in other folders
			err = checkOwnKubeconfig(c.kubeconfig)
		}
		if err != nil {
			return err
		}
		return writeAtomically(c.kubeconfig, data)
	}
	// Without a path, a temporary folder holds the file; its permissions protect the token, too.
	folder, err := os.MkdirTemp("", "devcluster-")
	if err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	c.cleanUp = append(c.cleanUp, removeFolder(folder))
	c.kubeconfig = filepath.Join(folder, "kubeconfig")
	return writeAtomically(c.kubeconfig, data)
}

// checkOwnKubeconfig returns an error if the file exists and is not a former kubeconfig of this package, so that
// ~/.kube/config cannot be overwritten by mistake.
func checkOwnKubeconfig(path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	// A file that is not a kubeconfig is not overwritten, either.
	former, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return fmt.Errorf("the kubeconfig %s exists and cannot be read: %w", path, err)
	}
	if len(former.Clusters) != 1 || former.Clusters[clusterName] == nil {
		return fmt.Errorf("the kubeconfig %s is of another cluster: choose a path that does not exist", path)
	}
	return nil
}

// checkWritable reports at the start whether a file can be written at the end. An empty path is not checked.
func checkWritable(path string) error {
	if path == "" {
		return nil
	}
	file, err := createBeside(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// createBeside creates a temporary file with mode 0600 in the folder of a path. A rename within a folder is atomic.
func createBeside(path string) (*os.File, error) {
	// The temporary file is hidden, and in the same file system as its target.
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	var failed *fs.PathError
	if errors.As(err, &failed) {
		err = failed.Err // users do not know the temporary file
	}
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", path, err)
	}
	return file, nil
}

// writeAtomically writes a file with mode 0600. After a failure or a kill, the former file is still complete.
func writeAtomically(path string, data []byte) (err error) {
	file, err := createBeside(path)
	if err != nil {
		return err
	}
	// After an error, the temporary file must not remain beside the target.
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("writing %s: %w", path, err), os.Remove(file.Name()))
		}
	}()
	_, err = file.Write(data)
	// Sync before the rename: after a crash of the machine, the renamed file could be empty otherwise.
	err = errors.Join(err, file.Sync(), file.Close())
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// logWriter logs the messages of net/http, such as failed TLS handshakes.
type logWriter struct{ logr.Logger }

// Write logs one message.
func (w logWriter) Write(line []byte) (int, error) {
	w.V(1).Info("A connection failed", "detail", string(line))
	return len(line), nil
}

// quietLog returns a logger for net/http that logs at a high verbosity only.
func quietLog(to logr.Logger) *log.Logger { return log.New(logWriter{to}, "", 0) }
