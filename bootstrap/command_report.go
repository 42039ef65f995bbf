package bootstrap

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"seckill/adapters/doorclient"
	"seckill/application"
)

func (p *program) verifyCommand() *cobra.Command {
	var door doorFlags
	var product, journal string
	cmd := &cobra.Command{
		Use: "verify", Short: "Check the invariants A to E on gate and ledger",
		Long: "Checks the invariants A (no oversell), B (no leak), C (once), D (truthful) and E (live).\n" +
			"Asks a running service; where none is known it opens the servers, or the data folder, itself.",
		Example: "  seckill verify\n  seckill verify --product demo-phone -o json\n" +
			"  seckill verify --admin http://127.0.0.1:8081 --token $TOKEN",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.checkOutput(); err != nil {
				return err
			}
			c, err := p.config()
			if err != nil {
				return err
			}
			v, err := p.verify(cmd.Context(), c, &door, product, journal)
			if err != nil {
				return err
			}
			if err := p.print(v, func() { p.printVerification(v) }); err != nil {
				return err
			}
			if !v.Holds {
				return errViolation
			}
			return nil
		},
	}
	door.add(cmd)
	p.outputFlag(cmd)
	cmd.Flags().StringVar(&product, "product", "", "one product; all where it is empty")
	cmd.Flags().StringVar(&journal, "journal", "", "JSON lines of what clients were told, for D (opens the servers itself)")
	return cmd
}

func (p *program) verify(ctx context.Context, c Config, door *doorFlags, product, journalPath string) (v application.Verification, err error) {
	journal, err := readJournal(journalPath)
	if err != nil {
		return v, withExit(ExitUsage, err)
	}
	client, err := door.client(ctx, c)
	if err != nil {
		return v, err
	}
	if client != nil {
		if journal != nil {
			return v, withExit(ExitUsage, fmt.Errorf("--journal: stop the service first; a running one is asked without a journal"))
		}
		return readAnswer[application.Verification](client.Verify(ctx, &doorclient.VerifyParams{ProductID: given(product)}))
	}
	err = p.withTools(ctx, c, func(app *App) error {
		v, err = app.Verify.Verify(ctx, product, journal)
		return err
	})
	return v, err
}

func readJournal(path string) ([]application.JournalEntry, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	journal := []application.JournalEntry{}
	for lines := bufio.NewScanner(f); ; {
		if !lines.Scan() {
			return journal, lines.Err()
		}
		var e application.JournalEntry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, len(journal)+1, err)
		}
		journal = append(journal, e)
	}
}

func (p *program) printVerification(v application.Verification) {
	for _, i := range v.Invariants {
		sayTo(p.stdout, "%s  %-14s %s %d checked, %d broken", i.Name, i.Title, p.paint(i.Verdict, 8), i.Checked, i.Broken)
		for _, f := range i.Findings {
			sayTo(p.stdout, "     %s %s %s %s", f.Product, f.User, f.Token, f.Detail)
		}
	}
	sayTo(p.stdout, "%d products, %d orders, %d confirmed with %d units", v.Products, v.Orders, v.Confirmed, v.Units)
}

func (p *program) reconcileCommand() *cobra.Command {
	var door doorFlags
	var apply bool
	var plan, product, policy, reason string
	cmd := &cobra.Command{
		Use: "reconcile", Short: "Compare gate and ledger flow by flow; repair with --apply",
		Example: "  seckill reconcile                    # dry run: changes nothing\n" +
			"  seckill reconcile --apply --plan ID --yes  # does what that dry run listed",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.checkOutput(); err != nil {
				return err
			}
			c, err := p.config()
			if err != nil {
				return err
			}
			request := application.ReconcileRequest{Mode: application.ReconcileDryRun, PlanID: plan, Product: product,
				Policy: application.ReconcilePolicy(policy), Actor: "command", Reason: reason}
			if apply {
				request.Mode = application.ReconcileApply
				if err := p.confirmed(cmd.Context(), "This repairs what differs between gate and ledger"); err != nil {
					return err
				}
			}
			r, err := p.reconcile(cmd.Context(), c, &door, request)
			if err != nil {
				return err
			}
			if err := p.print(r, func() { p.printReport(r) }); err != nil {
				return err
			}
			if len(r.Found) > 0 && !apply {
				return errViolation
			}
			return nil
		},
	}
	door.add(cmd)
	p.outputFlag(cmd)
	p.yesFlag(cmd)
	cmd.Flags().BoolVar(&apply, "apply", false, "repair what is found")
	cmd.Flags().StringVar(&plan, "plan", "", "with --apply: only what this dry run listed")
	cmd.Flags().StringVar(&reason, "why", "", "kept with the report, and with the audit rows of repairs")
	cmd.Flags().StringVar(&product, "product", "", "one product; all where it is empty")
	cmd.Flags().StringVar(&policy, "policy", string(application.PolicySendAgain), "for open flows without an order: send-again, report-only or roll-back")
	return cmd
}

func (p *program) reconcile(ctx context.Context, c Config, door *doorFlags, request application.ReconcileRequest) (r application.ReconcileReport, err error) {
	client, err := door.client(ctx, c)
	if err != nil {
		return r, err
	}
	if client != nil {
		policy := doorclient.ReconcileRequestPolicy(request.Policy)
		return readAnswer[application.ReconcileReport](client.Reconcile(ctx, doorclient.ReconcileRequest{
			Mode: doorclient.ReconcileRequestMode(request.Mode), Policy: &policy, PlanID: given(request.PlanID), ProductID: given(request.Product),
			Reason: given(request.Reason)}))
	}
	err = p.withTools(ctx, c, func(app *App) error {
		if r, err = app.Reconcile.Reconcile(ctx, request); err != nil {
			return err
		}
		return app.Rebuild.WaitIdle(ctx) // a drift that was found is repaired by a rebuild of this process
	})
	return r, err
}

func (p *program) printReport(r application.ReconcileReport) {
	sayTo(p.stdout, "%s %s, policy %s: %d products, %d flows, %d orders", r.Mode, r.ID, r.Policy, r.Products, r.Flows, r.Orders)
	kinds := make([]string, 0, len(r.Found))
	for kind, n := range r.Found {
		kinds = append(kinds, fmt.Sprintf("%s %d", kind, n))
	}
	sort.Strings(kinds)
	if len(kinds) == 0 {
		kinds = []string{"nothing"}
	}
	sayTo(p.stdout, "found: %s; repaired %d", strings.Join(kinds, ", "), r.Repaired)
	for _, a := range r.Anomalies {
		sayTo(p.stdout, "  %-24s %s %s %s %+d  %s → %s", a.Kind, a.Product, a.User, a.Token, a.Units, a.Evidence, a.Action)
	}
}

// print writes v as JSON, a list also one member a line, or calls text.
func (p *program) print(v any, text func()) error {
	e := json.NewEncoder(p.stdout)
	switch p.output {
	case outputJSON:
		e.SetIndent("", "  ")
		return e.Encode(v)
	case outputLines:
		list := reflect.ValueOf(v)
		if list.Kind() != reflect.Slice {
			return e.Encode(v)
		}
		for i := range list.Len() {
			if err := e.Encode(list.Index(i).Interface()); err != nil {
				return err
			}
		}
		return nil
	}
	text()
	return nil
}

// withTools opens the servers, or the embedded folder under its lock after the cold road, and
// calls do; the doors stay closed.
func (p *program) withTools(ctx context.Context, c Config, do func(*App) error) error {
	app, err := NewToolApp(c, newLogger(c.Log, p.stderr))
	if err != nil {
		return err
	}
	defer app.Close()
	if err := app.Start(ctx); err != nil {
		return err
	}
	if err := do(app); err != nil {
		_ = app.Stop()
		return err
	}
	return app.Stop()
}
