package kopf_test

import (
	"context"
	"os"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// The fields that identify the operator to the API server. An operator uses only some of them.
func ExampleConnectionInfo() {
	op := kopf.New("example.org")
	op.OnLogin("password", func(context.Context, *kopf.Activity) (*kopf.ConnectionInfo, error) {
		return &kopf.ConnectionInfo{
			Server:   "https://localhost",
			Insecure: true,
			Username: "ann",
			Password: os.Getenv("PASSWORD"),
			ProxyURL: "http://proxy:3128",
		}, nil
	})
	op.OnLogin("minikube", func(context.Context, *kopf.Activity) (*kopf.ConnectionInfo, error) {
		home, err := os.UserHomeDir() // ~ is not expanded
		if err != nil {
			return nil, kopf.Permanent(err)
		}
		return &kopf.ConnectionInfo{
			Server:          "https://192.168.49.2:8443",
			CAPath:          home + "/.minikube/ca.crt",
			CertificatePath: home + "/.minikube/client.crt",
			PrivateKeyPath:  home + "/.minikube/client.key",
			Expiration:      time.Date(2099, 12, 31, 23, 59, 59, 0, time.UTC),
			Priority:        10,
		}, nil
	})
}

// The functions for logins are handlers.
func ExampleLoginWithKubeconfig() {
	op := kopf.New("example.org")
	op.OnLogin("login", kopf.LoginWithKubeconfig, kopf.Retries(3))
}

// Login handlers can also call them.
func ExampleLoginWithServiceAccount() {
	op := kopf.New("example.org")
	op.OnLogin("login", func(ctx context.Context, a *kopf.Activity) (*kopf.ConnectionInfo, error) {
		info, err := kopf.LoginWithServiceAccount(ctx, a)
		if info != nil || err != nil {
			return info, err
		}
		return kopf.LoginWithKubeconfig(ctx, a)
	})
}

// Config accepts all that client-go supports, such as another context of the kubeconfig.
func ExampleConnectionInfo_config() {
	op := kopf.New("example.org")
	op.OnLogin("staging", func(context.Context, *kopf.Activity) (*kopf.ConnectionInfo, error) {
		config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
			clientcmd.NewDefaultClientConfigLoadingRules(),
			&clientcmd.ConfigOverrides{CurrentContext: "staging"},
		).ClientConfig()
		if err != nil {
			return nil, kopf.Permanent(err)
		}
		return &kopf.ConnectionInfo{Config: config}, nil
	})
}
