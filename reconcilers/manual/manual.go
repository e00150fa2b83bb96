package manual

// Base is the address of the folder of all pages. The runbook_url of each alert in config/monitoring starts with it.
const Base = "https://github.com/kopf-runtime/kopf-runtime/blob/main/docs/"

// Pages that messages link to. The part after # is the heading as GitHub renders it.
const (
	// ConditionsInSchema explains which parts of a CRD's schema conditions need.
	ConditionsInSchema = Base + "conditions.md#requirements-for-the-crd"
	// Mistakes lists the errors of the set-up, with the code that causes each.
	Mistakes = Base + "mistakes.md"
	// Alerts has a section for each alert. The heading is the name of the alert in lower case.
	Alerts = Base + "monitoring.md"
)
