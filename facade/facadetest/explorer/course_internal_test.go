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
		"uncut": {reason: "the course without any trouble is named uncut"},
		"cut-after-write-2-of-pods/one": {
			reason: "a cut is named with its point",
			course: course{{cut, "after-write-2-of-pods/one"}},
		},
		"cut-at-return-1-of-make-for-Pod-default/one": {
			reason: "a point that begins with at is parsed as the point of a cut",
			course: course{{cut, "at-return-1-of-make-for-Pod-default/one"}},
		},
		"cut-before-read-1-of-pods/one,409-at-write-2-of-pods/one,cut-at-the-next-life": {
			reason: "a course with several parts is named after all of them",
			course: course{
				{cut, "before-read-1-of-pods/one"}, {conflict, "write-2-of-pods/one"}, {cut, nextLife},
			},
		},
		"events-late-by-3,lost-answer-at-the-next-life": {
			reason: "late events are named without a point",
			course: course{{kind: delayByThree}, {lostAnswer, nextLife}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.course.String(); got != name {
				t.Errorf("%s: got the name %q", tc.reason, got)
			}
			got, err := parseCourse(name)
			if diff := cmp.Diff(tc.course, got, cmp.AllowUnexported(trouble{})); err != nil || diff != "" {
				t.Errorf("%s: parsed: %v (-want, +got):\n%s", tc.reason, err, diff)
			}
		})
	}
	for _, wrong := range []string{"", "cut-", "410-at-write-1-of-pods", "cut-after-write-1-of-pods,"} {
		if c, err := parseCourse(wrong); err == nil {
			t.Errorf("parsing the invalid name %q must fail, got %v", wrong, c)
		}
	}
}
