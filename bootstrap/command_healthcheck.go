package bootstrap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"seckill/application"
	"seckill/domain"
)

// errNotReady ends a look whose answer already says what is away.
var errNotReady = &exitError{ExitFailed, errors.New("the service is not ready")}

// readiness is what /readyz answers.
type readiness struct {
	Ready    bool                              `json:"ready"`
	Draining bool                              `json:"draining"`
	Parts    map[string]application.PartStatus `json:"parts"`
}

func (p *program) healthcheckCommand() *cobra.Command {
	var target string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "healthcheck", Short: "Ask a running service whether it is ready",
		Long: "Asks /readyz of the buyers' door, for images without curl. Exit codes: 0 ready, 1 not ready (some part is away, or\n" +
			"it is stopping), 3 no answer.",
		Example: "  seckill healthcheck\n  seckill healthcheck --target http://127.0.0.1:8080 --timeout 1s",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.checkOutput(); err != nil {
				return err
			}
			if target == "" {
				c, err := p.config()
				if err == nil {
					target, err = buyersDoorOf(c)
				}
				if err != nil {
					return err
				}
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			r, err := askReadiness(ctx, target)
			if err != nil {
				return err
			}
			if err := p.print(r, func() { p.printReadiness(r) }); err != nil {
				return err
			}
			if !r.Ready {
				return errNotReady
			}
			return nil
		},
	}
	p.outputFlag(cmd)
	cmd.Flags().StringVar(&target, "target", "", "a door of the service, with scheme; else what http.addr says, or the embedded service on this machine")
	cmd.Flags().DurationVar(&timeout, "timeout", 3*time.Second, "how long an answer may take")
	return cmd
}

// buyersDoorOf is where a service with these settings sells, as seen from this machine.
func buyersDoorOf(c Config) (string, error) {
	if c.Embedded() {
		if run, err := readRunFile(c.Data); err != nil || run != nil {
			return run.buyers(), err
		}
	}
	host, port, err := net.SplitHostPort(c.HTTP.Addr)
	if err != nil || port == "0" {
		return "", withExit(ExitUsage, errors.New("no running service is known; say --target"))
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port), nil
}

func (r *RunFile) buyers() string {
	if r == nil {
		return ""
	}
	return r.Buyers
}

func askReadiness(ctx context.Context, target string) (r readiness, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(target, "/")+"/readyz", nil)
	if err != nil {
		return r, withExit(ExitUsage, err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return r, domain.NewError(domain.CodeUnavailable, "no answer from "+target, err)
	}
	defer func() { _ = res.Body.Close() }()
	if err := json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&r); err != nil || r.Parts == nil {
		return r, fmt.Errorf("%s/readyz answered %s, and nothing of ours", target, res.Status)
	}
	r.Ready = r.Ready && res.StatusCode == http.StatusOK
	return r, nil
}

func (p *program) printReadiness(r readiness) {
	verdict := "ready"
	if !r.Ready {
		verdict = "not ready"
	}
	if r.Draining {
		verdict += ", stopping"
	}
	sayTo(p.stdout, "%s", p.paint(verdict, 0))
	for _, name := range slices.Sorted(maps.Keys(r.Parts)) {
		part, state := r.Parts[name], "ok"
		if !part.OK {
			state = "away"
		}
		seen := "never seen"
		if part.AgeSeconds >= 0 {
			seen = fmt.Sprintf("seen %.1f s ago", part.AgeSeconds)
		}
		sayTo(p.stdout, "  %-10s %s %s %s", name, p.paint(state, 5), seen, part.Detail)
	}
}
