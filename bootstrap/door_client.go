package bootstrap

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"seckill/domain"
)

// doorClient asks the operators' door of a running service.
type doorClient struct {
	base, token string
	http        *http.Client
}

// doorFlags say which service a command asks.
type doorFlags struct{ admin, token string }

func (f *doorFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.admin, "admin", "", "operators' door of a running service, with scheme")
	cmd.Flags().StringVar(&f.token, "token", "", "bearer token for it")
}

// client gives nil where no running service is known: the command then opens the servers, or
// the data folder, itself.
func (f *doorFlags) client(ctx context.Context, c Config) (*doorClient, error) {
	if f.admin != "" {
		if f.token == "" {
			return nil, withExit(ExitUsage, errors.New("--admin needs --token (seckill token prints one)"))
		}
		return newDoorClient(f.admin, f.token), nil
	}
	if !c.Embedded() {
		return nil, nil
	}
	run, err := readRunFile(c.Data)
	if err != nil || run == nil {
		return nil, err
	}
	client := newDoorClient(run.Operators, run.Token)
	if !client.answers(ctx) {
		return nil, nil // left behind by a service that was killed
	}
	return client, nil
}

func newDoorClient(base, token string) *doorClient {
	return &doorClient{strings.TrimRight(base, "/"), token, &http.Client{Timeout: 6 * time.Minute}}
}

func (d *doorClient) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return d.call(ctx, http.MethodGet, "/healthz", nil, nil) == nil
}

// call sends body as JSON and reads the answer into out; a problem becomes a domain error of its code.
func (d *doorClient) call(ctx context.Context, method, path string, body, out any) error {
	var reader io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		reader = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, d.base+path, reader)
	if err != nil {
		return withExit(ExitUsage, err)
	}
	req.Header.Set("Authorization", "Bearer "+d.token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := d.http.Do(req)
	if err != nil {
		return domain.NewError(domain.CodeUnavailable, "no answer from "+d.base, err)
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(res.Body, 64<<20))
	if err != nil {
		return domain.NewError(domain.CodeUnavailable, "torn answer from "+d.base, err)
	}
	if res.StatusCode >= 300 {
		var problem struct {
			Code   domain.Code `json:"code"`
			Detail string      `json:"detail"`
		}
		if json.Unmarshal(answer, &problem) != nil || problem.Code == "" {
			return fmt.Errorf("%s %s answered %s", method, path, res.Status)
		}
		return domain.NewError(problem.Code, problem.Detail, nil)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer, out)
}
