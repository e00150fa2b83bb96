// Not part of the public API.
//
// Package requirements describes the filters of handlers as data, as far as that is possible. [Requirement] is for
// evaluation elsewhere, such as by API servers for admission. [Words] are for explanations to users.
//
// Requirements are a declarative approximation of filters. Filters are functions, and only they make the decision. A
// requirement can demand less than its filter: use it to narrow a query.
//
// Package handlers stores requirements with each handler. Package webhooks/admission renders them in CEL.
package requirements
