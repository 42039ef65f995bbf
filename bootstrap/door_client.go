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

	"seckill/adapters/doorclient"
	"seckill/domain"
)

// doorClient asks a door of a running service.
type doorClient struct{ *doorclient.Client }

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
		return newDoorClient(f.admin, f.token)
	}
	if !c.Embedded() {
		return nil, nil
	}
	run, err := readRunFile(c.Data)
	if err != nil || run == nil {
		return nil, err
	}
	client, err := newDoorClient(run.Operators, run.Token)
	if err != nil || !client.answers(ctx) {
		return nil, err // left behind by a service that was killed
	}
	return client, nil
}

func newDoorClient(base, token string) (*doorClient, error) {
	base = strings.TrimRight(base, "/")
	client, err := doorclient.New(base, token, &doorCaller{base, &http.Client{Timeout: 6 * time.Minute}})
	if err != nil {
		return nil, withExit(ExitUsage, err)
	}
	return &doorClient{client}, nil
}

func (d *doorClient) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_, err := readAnswer[doorclient.Health](d.Healthy(ctx))
	return err == nil
}

// doorCaller makes the requests of a doorClient. What is no good answer is an error: a problem is a domain error of its code,
// a door that does not answer is unavailable.
type doorCaller struct {
	base string
	http *http.Client
}

// Do gives an answer whose body has been read, up to a bound.
func (d *doorCaller) Do(req *http.Request) (*http.Response, error) {
	res, err := d.http.Do(req) //nolint:gosec // G704: whoever runs the command names the door
	if err != nil {
		return nil, domain.NewError(domain.CodeUnavailable, "no answer from "+d.base, err)
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(res.Body, 64<<20))
	if err != nil {
		return nil, domain.NewError(domain.CodeUnavailable, "torn answer from "+d.base, err)
	}
	if res.StatusCode >= 300 {
		var problem doorclient.Problem
		if json.Unmarshal(answer, &problem) != nil || problem.Code == "" {
			return nil, fmt.Errorf("%s %s answered %s", req.Method, req.URL.RequestURI(), res.Status)
		}
		detail := ""
		if problem.Detail != nil {
			detail = *problem.Detail
		}
		return nil, domain.NewError(domain.Code(problem.Code), detail, nil)
	}
	res.Body = io.NopCloser(bytes.NewReader(answer))
	return res, nil
}

// readAnswer reads an answer into the view that the command prints, which is what the use case gives where no service is asked.
func readAnswer[T any](res *http.Response, err error) (v T, _ error) {
	if err != nil {
		return v, err
	}
	defer func() { _ = res.Body.Close() }()
	return v, json.NewDecoder(res.Body).Decode(&v)
}

// given is a field of a request that is left out where it is empty.
func given[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}
