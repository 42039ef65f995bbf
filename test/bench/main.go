package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"seckill/adapters/echohttp"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch word(os.Args) {
	case "bare":
		err = serveBare(ctx)
	case "literal":
		err = serveLiteral(ctx)
	default:
		err = measure(ctx, os.Args[1:])
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// word is what this binary is started as by itself.
func word(args []string) string {
	if len(args) > 1 {
		return args[1]
	}
	return ""
}

// measure leaves no result where an invariant is broken. A figure that failed is in the result as not run, and an error.
func measure(ctx context.Context, args []string) (err error) {
	s, err := readSettings(args)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.out, 0o750); err != nil {
		return err
	}
	tokens, err := echohttp.NewTokens([]byte(s.key), "seckill", "seckill")
	if err != nil {
		return err
	}
	b, err := newBench(s, tokens)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	if err := b.start(ctx); err != nil {
		return err
	}
	failed := b.rounds(ctx)
	if errors.Is(failed, errBroken) || ctx.Err() != nil {
		return errors.Join(failed, ctx.Err())
	}
	b.result.finish(b.s)
	b.result.print(os.Stdout)
	return errors.Join(failed, b.result.write(s.out))
}

// start starts the bare server, and the service where it is not a running one.
func (b *bench) start(ctx context.Context) (err error) {
	if b.bare, err = startSelf(ctx, b.s, "bare", nil); err != nil {
		return err
	}
	b.meter["bare"] = b.bare.pid()
	if b.s.binary == "" {
		return nil
	}
	if b.servers, err = serversHere(); err != nil {
		return err
	}
	b.servers.watch(b.meter)
	if b.service, err = b.startService(ctx, "service"); err != nil {
		return err
	}
	b.s.target, b.s.admin = b.service.buyers, b.service.operators
	b.meter["service"] = b.service.pid()
	return nil
}

func (b *bench) stop() (err error) {
	if b.service != nil {
		err = b.service.stop()
	}
	if b.bare != nil {
		err = errors.Join(err, b.bare.stop())
	}
	return err
}
