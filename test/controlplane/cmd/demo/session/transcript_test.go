package session_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/test/controlplane/cmd/demo/session"
)

func TestTranscriptLines(t *testing.T) {
	cases := map[string]struct {
		reason string
		pieces []string
		want   string
	}{
		"Pieces": {
			reason: "a pipe cuts lines anywhere", pieces: []string{"on", "e\ntw", "o", "\n"}, want: "> one\n> two\n",
		},
		"Several": {
			reason: "one piece may hold several lines, empty ones too", pieces: []string{"one\n\ntwo\n"},
			want: "> one\n> \n> two\n",
		},
		"Returns": {
			reason: "a carriage return would overwrite the prefix", pieces: []string{"one\r\n"}, want: "> one\n",
		},
		"Unended": {
			reason: "a program's last words may lack their end of line", pieces: []string{"one\ntwo"},
			want: "> one\n> two\n",
		},
		"Nothing": {reason: "empty output writes no line", pieces: []string{""}},
		"LongLines": {
			reason: "stack traces in one line are long", pieces: []string{strings.Repeat("x", 1<<17), "\n"},
			want: "> " + strings.Repeat("x", 1<<17) + "\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			transcript := session.NewTranscript(&out, "> ")
			for _, piece := range tc.pieces {
				if n, err := transcript.Write([]byte(piece)); n != len(piece) || err != nil {
					t.Fatalf("Write(%d bytes): want them all and no error, got %d, %v", len(piece), n, err)
				}
			}
			transcript.Flush()
			transcript.Flush()
			if got := out.String(); got != tc.want {
				t.Errorf("%s\nwant %q\ngot  %q", tc.reason, tc.want, got)
			}
		})
	}
}

func TestTranscriptWatch(t *testing.T) {
	transcript := session.NewTranscript(&bytes.Buffer{}, "")
	write := func(text string) { _, _ = transcript.Write([]byte(text)) }
	isIt := func(line string) bool { return strings.HasPrefix(line, "it") }

	write("it was before\n")
	seen, end := transcript.Watch(isIt)
	defer end()
	ended, endNow := transcript.Watch(isIt)
	endNow()
	write("not yet\nit is\nit is again\n")

	if got := <-seen; got != "it is" {
		t.Errorf("the watcher gets the first match after its start: want %q, got %q", "it is", got)
	}
	for name, channel := range map[string]<-chan string{"that got its line": seen, "that ended": ended} {
		select {
		case line := <-channel:
			t.Errorf("a watcher %s gets no more lines: got %q", name, line)
		default:
		}
	}
}
