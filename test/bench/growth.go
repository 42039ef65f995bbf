package main

import "context"

// playManyProducts is figure 8.
func playManyProducts(ctx context.Context, r *round) error {
	_, products := r.names(r.s.many)
	if err := r.open(ctx, r.s.admin, products, plenty); err != nil {
		return err
	}
	one, err := r.sale(ctx)
	if err != nil {
		return err
	}
	seen, err := r.sell(ctx, "sales, many products", doors{r.s.target, r.s.admin}, products, 0)
	if err != nil {
		return err
	}
	r.result.record("8a", over(seen.rows, one.rows))
	r.result.record("8b", seen.backlog)
	return nil
}
