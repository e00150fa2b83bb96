package logging

// ManualBase is the address of the folder of all pages. The runbook_url of each alert in config/monitoring starts with
// it.
const ManualBase = "https://github.com/kopf-runtime/kopf-runtime/blob/main/docs/"

// Pages that log messages, errors and alerts link to. A test in test/documents checks that each address leads to an
// existing page and heading below docs. The part after # is the heading as GitHub renders it.
const (
	// ManualConditionsInSchema explains which parts of a CRD's schema conditions need.
	ManualConditionsInSchema = ManualBase + "conditions.md#requirements-for-the-crd"
	// ManualMistakes lists the errors of the set-up, with the code that causes each.
	ManualMistakes = ManualBase + "mistakes.md"
	// ManualAlerts has a section for each alert. The heading is the name of the alert in lower case.
	ManualAlerts = ManualBase + "monitoring.md"
)
