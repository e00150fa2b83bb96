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
	// identityTimeout is short, as a review waits for the answer.
	identityTimeout = 5 * time.Second
	// identityPause follows a failure: the API may be missing or forbidden.
	identityPause = time.Minute
)

// identity is the user that the operator's requests come from. The API server is asked when the name is needed for the
// first time, and the answer is kept: other replicas have the same user.
type identity struct {
	api rest.Interface

	mu    sync.Mutex
	name  string
	after time.Time // of a failure: the next attempt
}

// user returns the name; empty if it is not known.
func (i *identity) user(ctx context.Context) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.name != "" || time.Now().Before(i.after) {
		return i.name
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), identityTimeout)
	defer cancel()
	var err error
	if i.name, err = i.ask(ctx); err != nil || i.name == "" {
		if i.after.IsZero() {
			logf.FromContext(ctx).Info("Cannot find out the operator's own user; admission handlers are called for "+
				"its changes of the status, too", "error", errorText(err))
		}
		i.after = time.Now().Add(identityPause)
	}
	return i.name
}

func (i *identity) ask(ctx context.Context) (name string, err error) {
	question, err := json.Marshal(map[string]any{
		"apiVersion": authenticationv1.SchemeGroupVersion.String(), "kind": "SelfSubjectReview",
	})
	if err != nil {
		return "", err
	}
	answer, err := i.api.Post().AbsPath("/apis/authentication.k8s.io/v1/selfsubjectreviews").
		SetHeader("Content-Type", "application/json").Body(question).Do(ctx).Raw()
	if err != nil {
		return "", err
	}
	var review authenticationv1.SelfSubjectReview
	err = json.Unmarshal(answer, &review)
	return review.Status.UserInfo.Username, err
}

func errorText(err error) string {
	if err == nil {
		return "the API server names no user"
	}
	return err.Error()
}
