package controlplane

// auditPolicy is the policy file for kube-apiserver.
func auditPolicy(level string) map[string]any {
	if level == "" {
		level = "RequestResponse"
	}
	return map[string]any{
		"apiVersion": "audit.k8s.io/v1",
		"kind":       "Policy",
		"omitStages": []string{"RequestReceived"}, // one line per request is enough: the one with the answer
		"rules": []any{
			map[string]any{"level": "None", "users": []string{"system:apiserver", probeName}},
			map[string]any{"level": "None", "nonResourceURLs": []string{"/healthz*", "/livez*", "/readyz*"}},
			map[string]any{"level": level},
		},
	}
}
