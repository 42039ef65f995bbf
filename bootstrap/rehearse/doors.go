package rehearse

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"seckill/application"
	"seckill/domain"
)

// bodyMax bounds what is read of an answer.
const bodyMax = 4 << 20

// order is an order as the buyers' door shows it.
type order struct {
	Product  string `json:"productId"`
	User     string `json:"userId"`
	Token    string `json:"token"`
	Quantity int64  `json:"quantity"`
	Status   string `json:"status"`
}

// answer is what one request of a buyer led to. The zero kind is unknown.
type answer struct {
	kind       kind
	code       string // names it in the counts: the status and the problem's code, or what went wrong
	reason     string // of a refusal: the problem's code
	fresh      bool   // accepted, and not as a repeat
	order      order
	retryAfter time.Duration
}

// doors speaks HTTP with the service.
type doors struct {
	client         *http.Client
	target, admin  string
	operator       string
	crowd          *crowd
	buy            []byte
	requestTimeout time.Duration
	closeIdle      func()
}

func newDoors(c Config, w *crowd) *doors {
	t := &http.Transport{
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		MaxIdleConnsPerHost:   c.atOnce(),
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   5 * time.Second,
		ResponseHeaderTimeout: c.RequestTimeout,
		DisableCompression:    true,
	}
	return &doors{
		client: &http.Client{Transport: t}, target: strings.TrimRight(c.Target, "/"),
		admin: strings.TrimRight(c.Admin, "/"), operator: c.OperatorToken, crowd: w,
		buy: []byte(`{"quantity":1}`), requestTimeout: c.RequestTimeout, closeIdle: t.CloseIdleConnections,
	}
}

// reply is an HTTP answer that has been read.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// call makes one request; body nil sends none.
func (d *doors) call(ctx context.Context, method, address, bearer string, body []byte, key string) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, d.requestTimeout)
	defer cancel()
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, address, reader)
	if err != nil {
		return reply{}, err
	}
	req.GetBody = nil // else net/http asks again by itself after a torn connection
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, bodyMax))
	return reply{resp.StatusCode, resp.Header, b}, err
}

// purchase asks once for one unit for buyer i.
func (d *doors) purchase(ctx context.Context, i int, bearer string) answer {
	address := d.target + "/api/v1/products/" + d.crowd.product(i) + "/orders"
	re, err := d.call(ctx, http.MethodPost, address, bearer, d.buy, d.crowd.token(i))
	if err != nil {
		return answer{code: faultCode(err)}
	}
	return classify(re)
}

func classify(re reply) answer {
	a := answer{code: strconv.Itoa(re.status)}
	if re.status == http.StatusAccepted || re.status == http.StatusOK {
		_ = json.Unmarshal(re.body, &a.order) // an order that cannot be read is not the one asked for
		if s := a.order.Status; s == application.OrderCancelled || s == application.OrderRejected {
			a.kind, a.reason = refused, "order-"+s
			return a
		}
		a.kind = accepted
		a.fresh = re.header.Get("Idempotency-Replayed") != "true"
		return a
	}
	code := problemCode(re.body)
	a.code += " " + code
	switch s := re.status; {
	case s >= 500 || s == http.StatusTooManyRequests || s == http.StatusRequestTimeout:
		if n, err := strconv.Atoi(re.header.Get("Retry-After")); err == nil && n > 0 {
			a.retryAfter = time.Duration(n) * time.Second
		}
	default:
		a.kind, a.reason = refused, code
	}
	return a
}

// problemCode bounds what a server can make a label of.
func problemCode(body []byte) string {
	var p struct{ Code string }
	if json.Unmarshal(body, &p) != nil || p.Code == "" || len(p.Code) > 40 {
		return "no-code"
	}
	return p.Code
}

func faultCode(err error) string {
	var timeout net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return "stopped"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	}
	return "connection"
}

// show reads buyer i's order; "" is none.
func (d *doors) show(ctx context.Context, i int) (status string, err error) {
	bearer, err := d.crowd.bearer(i)
	if err != nil {
		return "", err
	}
	address := d.target + "/api/v1/products/" + d.crowd.product(i) + "/orders/" + d.crowd.token(i)
	re, err := d.call(ctx, http.MethodGet, address, bearer, nil, "")
	switch {
	case err != nil:
		return "", err
	case re.status == http.StatusNotFound && problemCode(re.body) == string(domain.CodeOrderNotFound):
		return "", nil
	case re.status != http.StatusOK && re.status != http.StatusAccepted:
		return "", fmt.Errorf("order answered %d %s", re.status, problemCode(re.body))
	}
	var o order
	if err := json.Unmarshal(re.body, &o); err != nil {
		return "", fmt.Errorf("order: %w", err)
	}
	return o.Status, nil
}

// ask is a request at the operators' door; its JSON answer goes into v.
func (d *doors) ask(ctx context.Context, method, path string, body []byte, v any) error {
	re, err := d.call(ctx, method, d.admin+path, d.operator, body, "")
	if err != nil {
		return domain.NewError(domain.CodeUnavailable, "operators' door "+d.admin, err)
	}
	if re.status != http.StatusOK && re.status != http.StatusCreated {
		return fmt.Errorf("operators' door: %s %s answered %d %s", method, path, re.status, problemCode(re.body))
	}
	if err := json.Unmarshal(re.body, v); err != nil {
		return fmt.Errorf("operators' door: %s %s: %w", method, path, err)
	}
	return nil
}

func (d *doors) putOnSale(ctx context.Context, product string, units int64) error {
	var view application.StockView
	body := fmt.Appendf(nil, `{"total":%d}`, units)
	return d.ask(ctx, http.MethodPut, "/admin/v1/products/"+product, body, &view)
}

// onSale says whether the gate has the product open.
func (d *doors) onSale(ctx context.Context, product string) (bool, error) {
	var view application.StockView
	err := d.ask(ctx, http.MethodGet, "/admin/v1/products/"+product, nil, &view)
	return view.State == "open" && view.Gate != nil && !view.Gate.Shut, err
}

func (d *doors) pipeline(ctx context.Context) (application.PipelineView, error) {
	var v application.PipelineView
	return v, d.ask(ctx, http.MethodGet, "/admin/v1/pipeline", nil, &v)
}

func (d *doors) verification(ctx context.Context, product string) (application.Verification, error) {
	var v application.Verification
	return v, d.ask(ctx, http.MethodGet, "/admin/v1/verification?productId="+url.QueryEscape(product), nil, &v)
}

// alive says whether the buyers' door answers at all.
func (d *doors) alive(ctx context.Context) error {
	if _, err := d.call(ctx, http.MethodGet, d.target+"/healthz", "", nil, ""); err != nil {
		return domain.NewError(domain.CodeUnavailable, "buyers' door "+d.target, err)
	}
	return nil
}
