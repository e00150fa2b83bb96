package admission

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/rest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// identityTimeout is short, because a review waits for the response.
	identityTimeout = 5 * time.Second
	// identityRetryDelay is the delay after an error: the API may be missing or forbidden.
	identityRetryDelay = time.Minute
)

// identity finds the user of the operator's requests. The API server is called when the name is needed for the first
// time. The result is kept, because all replicas have the same user.
type identity struct {
	api rest.Interface

	mu          sync.Mutex
	name        string
	nextAttempt time.Time // the time of the next attempt after an error
}

// operatorUser returns the name of the user, or "" if it is not known.
func (i *identity) operatorUser(ctx context.Context) string {
	// Concurrent reviews wait for one request.
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.name != "" || time.Now().Before(i.nextAttempt) {
		return i.name
	}
	// The result is useful for other reviews, too, so it does not depend on the context of this one.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), identityTimeout)
	defer cancel()
	var err error
	if i.name, err = i.requestUserName(ctx); err != nil || i.name == "" {
		// The first error is logged, but not its repetitions.
		if i.nextAttempt.IsZero() {
			logf.FromContext(ctx).Info("Cannot find out the operator's own user; admission handlers are called for "+
				"its changes of the status, too", "error", identityErrorText(err))
		}
		i.nextAttempt = time.Now().Add(identityRetryDelay)
	}
	return i.name
}

// requestUserName calls the API server. It needs no scheme: the request and its response are plain JSON.
func (i *identity) requestUserName(ctx context.Context) (name string, err error) {
	question, err := json.Marshal(map[string]any{
		"apiVersion": authenticationv1.SchemeGroupVersion.String(), "kind": "SelfSubjectReview",
	})
	if err != nil {
		return "", err
	}
	// The kind SelfSubjectReview needs Kubernetes 1.28. Older servers return an error.
	answer, err := i.api.Post().AbsPath("/apis/authentication.k8s.io/v1/selfsubjectreviews").
		SetHeader("Content-Type", "application/json").Body(question).Do(ctx).Raw()
	if err != nil {
		return "", err
	}
	var review authenticationv1.SelfSubjectReview
	err = json.Unmarshal(answer, &review)
	return review.Status.UserInfo.Username, err
}

// identityErrorText returns the text of the error. Without an error, the response did not contain a name.
func identityErrorText(err error) string {
	if err == nil {
		return "the API server names no user"
	}
	return err.Error()
}
