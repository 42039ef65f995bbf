package rehearse

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"os"

	"seckill/application"
)

//go:embed report.html
var pageText string

var page = template.Must(template.New("report").Parse(pageText))

// pageInvariant and pageThreshold are rows of the page.
type pageInvariant struct {
	application.InvariantResult
	Word, Evidence string
	Lines          []string
}

type pageThreshold struct{ Rule, Word, Measured string }

// Page is the report as one HTML document that asks nobody for anything: no script, no picture, no address.
func (p Report) Page() ([]byte, error) {
	data := struct {
		Report
		PlanText               string
		Sales, Refusals, Codes []line
		Waits                  []latency
		Rows                   []pageInvariant
		Rules                  []pageThreshold
		Headline               string
	}{Report: p, PlanText: p.plan(), Sales: p.sales(), Refusals: p.refusals(), Codes: p.answers()[1:], Waits: p.latencies(),
		Headline: p.headline()}
	for _, i := range p.Invariants {
		row := pageInvariant{InvariantResult: i, Word: shortVerdict(i.Verdict), Evidence: p.evidence(i)}
		for _, f := range i.Findings {
			row.Lines = append(row.Lines, finding(f))
		}
		data.Rows = append(data.Rows, row)
	}
	for _, r := range p.Thresholds {
		data.Rules = append(data.Rules, pageThreshold{r.Rule, r.verdict(), r.measured()})
	}
	var b bytes.Buffer
	err := page.Execute(&b, data)
	return b.Bytes(), err
}

func (p Report) headline() string {
	switch {
	case p.Violations():
		return "An invariant is broken"
	case !p.Holds:
		return "Not everything could be judged"
	case p.Missed():
		return "Every invariant holds; a threshold was missed"
	}
	return "Every invariant holds"
}

// writePage writes the page to path; an empty path asks for none.
func (p Report) writePage(path string) error {
	if path == "" {
		return nil
	}
	b, err := p.Page()
	if err == nil {
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write the report's page: %w", err)
	}
	return nil
}
