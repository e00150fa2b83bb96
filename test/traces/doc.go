// Package traces records every request of a whole operator in 34 stories, and compares each trace with a golden
// file in testdata. The files show what an operator sends for each feature, and when.
//
// Times count from the beginning of a step. "user" marks requests of other clients, "call" is the beginning of a
// handler's call, with its outcome. All other lines are requests of the operator, with the code of the answer and the
// body. "<Widget default/one v2>" is the resourceVersion of that object's second version. A request takes 10 ms.
//
// A changed golden file is a change of behaviour: explain it in the commit. The package is separate because it guards
// changes of structure. It plays one course of each story: test/explorer plays all, and the vectors compare with Kopf.
package traces
