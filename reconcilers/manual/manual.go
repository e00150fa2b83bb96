package manual

// Base is the address of the folder of all pages. The runbook_url of each alert in config/monitoring begins with it.
const Base = "https://github.com/kopf-runtime/kopf-runtime/blob/main/docs/"

// These are the pages that messages refer to.
const (
	// ConditionsInSchema is about the parts of a CRD that conditions need.
	ConditionsInSchema = Base + "conditions.md#requirements-for-the-crd"
	// Mistakes has the errors of a set-up, with the code that causes each.
	Mistakes = Base + "mistakes.md"
	// Alerts is the page with a section for each alert, by its name in lower case.
	Alerts = Base + "monitoring.md"
)
