package explorer

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNamesOfCourses(t *testing.T) {
	cases := map[string]struct {
		reason string
		course course
	}{
		"uncut": {reason: "the name of the run that all are compared with"},
		"cut-after-write-2-of-pods/one": {
			reason: "a cut is at a point",
			course: course{{cut, "after-write-2-of-pods/one"}},
		},
		"cut-at-return-1-of-make-for-Pod-default/one": {
			reason: "that a point begins with at makes it no other cut",
			course: course{{cut, "at-return-1-of-make-for-Pod-default/one"}},
		},
		"cut-before-read-1-of-pods/one,409-at-write-2-of-pods/one,cut-at-the-next-life": {
			reason: "a course has any number of parts",
			course: course{
				{cut, "before-read-1-of-pods/one"}, {conflict, "write-2-of-pods/one"}, {cut, nextLife},
			},
		},
		"events-late-by-3,lost-answer-at-the-next-life": {
			reason: "late events have no place",
			course: course{{what: lateThree}, {lostAnswer, nextLife}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.course.String(); got != name {
				t.Errorf("%s: the name is %q", tc.reason, got)
			}
			got, err := parse(name)
			if diff := cmp.Diff(tc.course, got, cmp.AllowUnexported(trouble{})); err != nil || diff != "" {
				t.Errorf("%s: parsed: %v (-want, +got):\n%s", tc.reason, err, diff)
			}
		})
	}
	for _, wrong := range []string{"", "cut-", "410-at-write-1-of-pods", "cut-after-write-1-of-pods,"} {
		if c, err := parse(wrong); err == nil {
			t.Errorf("%q is no name, and parsed as %v", wrong, c)
		}
	}
}
