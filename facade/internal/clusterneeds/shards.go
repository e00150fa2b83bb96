package clusterneeds

import (
	"bytes"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
)

// invalidSelector is refused by API servers that send ranges of objects. Others ignore it. A valid one would show the
// difference only if there are objects.
const invalidSelector = "none"

// checkShards finds out by a list of one object whether the API server sends ranges of objects to replicas that share
// them.
func (o CheckInput) checkShards(ctx context.Context, server *Server, served []discovery.Resource) []Finding {
	if o.Shards == 0 {
		return nil
	}
	finding := Finding{Status: Unknown, Check: "sharding", Subject: fmt.Sprintf("%d ranges of objects", o.Shards)}
	for _, one := range o.Handlers {
		for _, resource := range one.Selector.SelectFrom(served) {
			honoured, err := server.sendsRanges(ctx, o.namespaceOf(resource), resource)
			switch {
			case err != nil:
				finding.Problem = fmt.Sprintf("listing one object of %s: %v", resource.GroupResource(), err)
				continue
			case honoured:
				finding.Status, finding.Problem = OK, ""
			default:
				finding.Status = Warning
				finding.Problem = "the API server sends the objects of all ranges for each of them: the memory of " +
					"replicas stays small, the network traffic does not"
				finding.Fix = "use few ranges, or enable the feature gate ShardedListAndWatch of the API server"
			}
			return []Finding{finding}
		}
	}
	if finding.Problem == "" {
		finding.Problem = "the cluster does not have the kinds"
	}
	return []Finding{finding}
}

// namespaceOf returns a namespace in which the operator lists the resource, or "" for the whole cluster.
func (o CheckInput) namespaceOf(r discovery.Resource) string {
	if names, plain := o.Namespaces.PlainNames(); plain && r.Namespaced && len(names) > 0 {
		return names[0]
	}
	return ""
}

// sendsRanges reports whether the API server limits a list to a range.
func (s *Server) sendsRanges(ctx context.Context, namespace string, r discovery.Resource) (bool, error) {
	path := "/apis/" + r.Group + "/" + r.Version
	if r.Group == "" {
		path = "/api/" + r.Version
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	answer, err := s.api.RESTClient().Get().AbsPath(path+"/"+r.Plural).
		Param("limit", "1").Param("shardSelector", invalidSelector).SetHeader("Accept", "application/json").DoRaw(ctx)
	// Version 1.36 refuses it as an internal error.
	if err != nil && (apierrors.IsBadRequest(err) || bytes.Contains(answer, []byte("invalid shard selector"))) {
		return true, nil
	}
	return false, err
}
