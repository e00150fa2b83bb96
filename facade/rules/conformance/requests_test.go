package conformance_test

import (
	"fmt"
	"strings"
)

// request is one request of the table: a policy, the specs of the new and the old object, and the expected verdict. An
// empty spec means that the object does not exist: a request without an old one is a creation, one without a new one a
// deletion.
type request struct {
	policy, object, old string
	want                string // the code and the message; for a failed expression, the beginning of its error
}

// Verdicts of several requests.
const (
	allowed       = ""
	shrinkDenial  = "422 the size never shrinks"
	noSizeFailure = "failed: no such key: size"
	boundsDenial  = "413 out of bounds"
)

// fittingSpec is a spec that the rule about CEL extensions of Kubernetes allows.
const fittingSpec = `{"storage":"1Gi","timeout":"5m","range":"10.0.0.0/8","url":"https://a.b"%s}`

func fitting(more string) string { return fmt.Sprintf(fittingSpec, more) }

func list(n int) string { return `{"l":[` + strings.Repeat("1,", n-1) + "1]}" }

// requests is the table.
var requests = []request{
	{"grows", `{"size":1}`, "", allowed},
	{"grows", `{}`, "", allowed},
	{"grows", `{"size":2}`, `{"size":1}`, allowed},
	{"grows", `{"size":1}`, `{"size":1}`, allowed},
	{"grows", `{"size":1.5}`, `{"size":1}`, allowed},
	{"grows", `{"size":1}`, `{"size":2}`, shrinkDenial},
	{"grows", `{"size":-1}`, `{"size":0}`, shrinkDenial},
	{"grows", `{"size":1}`, `{"size":1.5}`, shrinkDenial},
	{"grows", `{"size":"b"}`, `{"size":"a"}`, allowed},
	{"grows", `{}`, `{"size":1}`, noSizeFailure},
	{"grows", `{"size":1}`, `{}`, noSizeFailure},
	{"grows", `{"size":"1"}`, `{"size":1}`, "failed: no such overload"},
	{"grows", `{"size":null}`, `{"size":1}`, "failed: no such"},
	{"grows", "", `{"size":1}`, allowed},

	{"late", `{"size":1}`, "", allowed},
	{"late", `{}`, "", allowed},
	{"late", `{"size":2}`, `{"size":1}`, allowed},
	{"late", `{"size":1}`, `{"size":2}`, "422 the size never shrinks below 2"},
	{"late", `{}`, `{"size":2}`, noSizeFailure},

	{"owner", `{}`, "", allowed},
	{"owner", `{"owner":"a"}`, `{"owner":"a"}`, allowed},
	{"owner", `{"owner":"b"}`, `{"owner":"a"}`, "403 the owner stays"},
	{"owner", `{"owner":"b"}`, `{"owner":1}`, "403 the owner stays"},
	{"owner", `{"owner":"b"}`, `{}`, "failed: no such key: owner"},
	{"owner", "", `{"owner":"a"}`, allowed},

	{"protected", `{"protected":true}`, "", allowed},
	{"protected", `{}`, `{"protected":true}`, allowed},
	{"protected", "", `{}`, allowed},
	{"protected", "", `{"protected":false}`, allowed},
	{"protected", "", `{"protected":true}`, "403 old-NUMBER is protected"},

	{"any", `{}`, "", allowed},
	{"any", `{}`, `{}`, allowed},
	{"any", `{"a":[1,{"b":null}]}`, `{"a":[1,{"b":null}]}`, allowed},
	{"any", `{"a":1}`, `{}`, "422 specs stay"},
	{"any", "", `{}`, allowed},

	{"items", `{"items":[]}`, "", allowed},
	{"items", `{"items":[{"name":"a","weight":1},{"name":"b","weight":2}]}`, "", allowed},
	{"items", `{"items":[{"name":"a","weight":0},{"name":"b","weight":-1}]}`, "", "422 wrong items: a, b"},
	{"items", `{"items":[{"name":"a","weight":1},{"name":"a","weight":2}]}`, "", "422 wrong items:"},
	{"items", `{"items":[{"weight":0}]}`, "", "422 items are named once, and weigh something"},
	{"items", `{"items":[{"name":"a"}]}`, "", "failed: no such key: weight"},
	{"items", `{"items":1}`, "", "failed: got 'types.Int', expected iterable type"},
	{"items", `{"items":[{"name":"a","weight":0}]}`, `{"items":[]}`, "422 wrong items: a"},

	{"costly", list(3), "", allowed},
	{"costly", list(100), "", "failed: operation cancelled: actual cost limit exceeded"},

	{"kubernetes", fitting(""), "", allowed},
	{"kubernetes", fitting(`,"replicas":6`), "", boundsDenial},
	{"kubernetes", fitting(`,"storage":"11Gi"`), "", boundsDenial},
	{"kubernetes", fitting(`,"storage":"much"`), "", "failed: quantities must match"},
	{"kubernetes", fitting(`,"timeout":"61m"`), "", boundsDenial},
	{"kubernetes", fitting(`,"range":"10.0.0.0/33"`), "", "failed: "},
	{"kubernetes", fitting(`,"url":"http://a.b"`), fitting(""), boundsDenial},

	{"several", `{"size":1}`, "", allowed},
	{"several", `{"size":2}`, "", "422 begin with 1"},
	{"several", `{"size":3}`, `{"size":2}`, allowed},
	{"several", `{"size":1}`, `{"size":2}`, "422 failed expression: object.spec.size == oldObject.spec.size + 1"},
	{"several", `{"size":10}`, `{"size":9}`, "422 stay below 10"},
	{"several", "", `{"size":3}`, allowed},
	{"several", "", `{"size":2}`, "403 end with 3"},
	{"several", "", `{}`, noSizeFailure},
}
