package interop_test

import "slices"

// changeRows are chains of changes, each of which is begun by one side, stopped at some point, and ended by the other,
// which goes on with the next. All pairs of points are among them.
func changeRows() (rows []row) {
	points := []string{killBeforeChange, killInFirst, killBetween, killInSecond, killAfterAll}
	for i, one := range points {
		for j, two := range points {
			three := points[(i+j)%len(points)]
			rows = append(
				rows,
				row{
					name: rowName("updated", one, two, three),
					legs: []leg{{"b", one, ""}, {"c", two, ""}, {"d", three, ""}},
				},
			)
		}
		two, three := points[(i+2)%len(points)], points[(i+3)%len(points)]
		if one != killBeforeChange {
			rows = append(
				rows,
				row{
					name: rowName("created", one, two, three),
					legs: []leg{{creation, one, ""}, {"b", two, ""}, {"d", three, ""}},
				},
			)
		}
	}
	for i := range rows {
		rows[i].want = rows[i].uninterruptedCalls()
	}
	return append(rows, editedRows()...)
}

// editedRows have an edit in the middle of a change. An operator that has not begun the change does not know the state
// that the finished handlers have seen: these are not called for that edit, as with Kopf alone.
func editedRows() []row {
	return []row{
		{
			name: "edited-in-the-middle", legs: []leg{{"b", killInSecond, "c"}, {noChange, killAfterAll, ""},
				{"d", killAfterAll, ""}},
			want: slices.Concat(
				createCalls(), []string{"u1 update a→b", "u2 update a→c", "f update a→c"}, updateCalls("c", "d"),
			),
		},
		{
			name: "edited-before-a-success", legs: []leg{{"b", killInFirst, "c"}, {noChange, killInSecond, ""},
				{"d", killInFirst, ""}},
			want: slices.Concat(createCalls(), updateCalls("a", "c"), updateCalls("c", "d")),
		},
		{
			name: "resumed", labels: map[string]any{"resumed": "yes"}, legs: []leg{
				{"b", killAfterAll, ""}, {"c", killAfterAll, ""}, {"d", killAfterAll, ""},
			},
			want: slices.Concat(createCalls(), updateCalls("a", "b"), updateCalls("b", "c"), updateCalls("c", "d"),
				[]string{"r resume b→b", "r resume c→c", "r resume d→d"}),
		},
	}
}

// deletionRows are deletions that are begun by one side, stopped at some point, and ended by the other; or stopped
// there again.
func deletionRows() (rows []row) {
	held := map[string]any{"held": "yes"}
	points := []string{killBeforeChange, killInFirst, killBetween, killInSecond}
	for i, one := range points {
		for _, two := range append(slices.Clone(points[max(1, i):]), killAfterAll) {
			r := row{
				name: rowName("deleted", one, two), labels: held, legs: []leg{{deletion, one, ""}, {noChange, two, ""}},
			}
			r.want = r.uninterruptedCalls()
			rows = append(rows, r)
		}
	}
	return append(rows,
		row{
			name: "deleted-amid-an-update", labels: held,
			legs: []leg{{"b", killInSecond, deletion}, {noChange, killAfterAll, ""}},
			want: slices.Concat(createCalls(),
				[]string{"u1 update a→b", "f delete a→b", "d1 delete a→b", "d2 delete a→b"}),
		},
		row{
			name: "deleted-before-a-success", labels: held,
			legs: []leg{{"b", killInFirst, deletion}, {noChange, killAfterAll, ""}},
			want: slices.Concat(createCalls(), []string{"f delete a→b", "d1 delete a→b", "d2 delete a→b"}),
		},
	)
}

// daemonRows have a daemon: it runs once in each life that finds the object alive, and holds the object until it has
// ended.
func daemonRows() (rows []row) {
	daemon := map[string]any{"daemon": "yes"}
	both := map[string]any{"daemon": "yes", "held": "yes"}
	for _, point := range []string{killInFirst, killBetween, killInSecond, killAfterAll} {
		rows = append(
			rows,
			row{
				name: rowName("watched", point), labels: both,
				legs: []leg{{"b", point, ""}, {"c", point, ""}, {deletion, point, ""}},
			},
		)
	}
	for i := range rows {
		rows[i].want = append(rows[i].uninterruptedCalls(), "w", "w", "w")
	}
	return append(rows,
		row{
			name: "watched-deleted-unseen", labels: daemon,
			legs: []leg{{deletion, killBeforeChange, ""}, {noChange, killAfterAll, ""}},
			want: append(createCalls(), "w"),
		},
		row{
			name: "stubborn", labels: daemon, plan: map[string]string{"0/w": "hang"}, legs: []leg{
				{deletion, "stopping", ""}, {noChange, killAfterAll, ""},
			},
			want: append(createCalls(), "w"),
		},
		row{
			name: "stubborn-held", labels: both, plan: map[string]string{"0/w": "hang"}, legs: []leg{
				{deletion, "stopping", ""}, {noChange, killAfterAll, ""},
			},
			want: append(append(createCalls(), deleteCalls("a")...), "w"), allowsRepeats: true,
		},
	)
}

// backgroundRows are objects that only something in the background holds.
func backgroundRows() []row {
	label := func(names ...string) map[string]any {
		labels := map[string]any{}
		for _, name := range names {
			labels[name] = "yes"
		}
		return labels
	}
	rows := []row{
		{
			name: "optional-unseen", labels: label("daemon", "optional"), legs: []leg{
				{deletion, killBeforeChange, ""}, {noChange, killAfterAll, ""},
			},
			want: append(createCalls(), "w", "o delete a→a"),
		},
		{
			name: "resuming-unseen", labels: label("daemon", "resumed"), legs: []leg{
				{deletion, killBeforeChange, ""}, {noChange, killAfterAll, ""},
			},
			want: append(createCalls(), "w", "r delete a→a"),
		},
		{
			name: "field-unseen", labels: label("daemon"),
			legs: []leg{{"b", killBeforeChange, deletion}, {noChange, killAfterAll, ""}},
			want: append(createCalls(), "w", "f delete a→b"),
		},
		{
			name: "optional-later", labels: label("daemon", "optional"), plan: map[string]string{"0/o": "later"},
			legs: []leg{{deletion, "tried", ""}, {noChange, killAfterAll, ""}},
			want: append(createCalls(), "w", "o delete a→a"),
		},
		{
			name: "optional-retried", labels: label("daemon", "optional"), plan: map[string]string{"0/o": "once"},
			legs: []leg{{deletion, killAfterAll, ""}}, want: append(createCalls(), "w", "o delete a→a"),
		},
		{
			name: "optional-timer", labels: label("timer", "optional"), legs: []leg{{deletion, killAfterAll, ""}},
			want: append(createCalls(), "o delete a→a"),
		},
	}
	return append(rows, row{
		name: "ended", labels: label("daemon"), plan: map[string]string{"0/w": "end", "1/w": "end"},
		legs: []leg{
			{creation, "released", ""}, {noChange, "released", ""}, {deletion, killAfterAll, ""},
		}, want: append(createCalls(), "w", "w", "w"),
	})
}
