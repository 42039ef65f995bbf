package echohttp

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"seckill/application"
)

func (d operatorsDoor) reconcile(ctx context.Context, c echo.Context, who Identity) error {
	request, err := readReconcile(c)
	if err != nil {
		return err
	}
	request.Actor = who.Subject
	report, err := d.deps.Reconcile.Reconcile(ctx, request)
	if err != nil {
		return err
	}
	c.Response().Header().Set("Location", "/admin/v1/reconciliations/"+report.ID)
	return d.writeView(c, http.StatusOK, report)
}

func readReconcile(c echo.Context) (r application.ReconcileRequest, err error) {
	var body struct {
		Mode      application.ReconcileMode   `json:"mode"`
		PlanID    *string                     `json:"planId"`
		ProductID *string                     `json:"productId"`
		Policy    application.ReconcilePolicy `json:"policy"`
		Reason    string                      `json:"reason"`
	}
	if err := readJSON(c, &body, false); err != nil {
		return r, err
	}
	switch body.Mode {
	case application.ReconcileDryRun, application.ReconcileApply:
	default:
		return r, badInput("body", "/mode", "must be dry-run or apply")
	}
	switch body.Policy {
	case "":
		body.Policy = application.PolicySendAgain
	case application.PolicySendAgain, application.PolicyReportOnly, application.PolicyRollBack:
	default:
		return r, badInput("body", "/policy", "must be send-again, report-only or roll-back")
	}
	if body.PlanID != nil {
		if err := checkRowID("body", "/planId", *body.PlanID); err != nil {
			return r, err
		}
		if body.Mode != application.ReconcileApply {
			return r, badInput("body", "/planId", "goes with apply only")
		}
	}
	if len(body.Reason) > reasonMax {
		return r, badInput("body", "/reason", "must have at most 200 bytes")
	}
	if body.ProductID != nil {
		if err := checkID("body", "/productId", *body.ProductID); err != nil {
			return r, err
		}
	}
	return application.ReconcileRequest{Mode: body.Mode, PlanID: orZero(body.PlanID),
		Product: orZero(body.ProductID), Policy: body.Policy, Reason: body.Reason}, nil
}

func (d operatorsDoor) listReports(ctx context.Context, c echo.Context, _ Identity) error {
	cursor, limit, err := pageByRow(c)
	if err != nil {
		return err
	}
	reports, err := d.deps.Reconcile.Reports(ctx, cursor, limit)
	if err != nil {
		return err
	}
	id := func(r application.ReconcileReport) string { return r.ID }
	return d.writeView(c, http.StatusOK, listOf(reports, limit, id))
}

func (d operatorsDoor) showReport(ctx context.Context, c echo.Context, _ Identity) error {
	id, err := pathRowID(c, "id")
	if err != nil {
		return err
	}
	report, err := d.deps.Reconcile.Report(ctx, id)
	if err != nil {
		return err
	}
	return d.writeView(c, http.StatusOK, report)
}
