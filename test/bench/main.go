package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"seckill/adapters/echohttp"
)

const keyVariable = "SECKILL_AUTH__KEY"

type settings struct {
	binary, target, admin, key, out string
	connections, runs, buyers       int
	products                        []int
	window                          time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if len(os.Args) > 1 && os.Args[1] == "bare" {
		err = serveBare(ctx)
	} else {
		err = measure(ctx, os.Args[1:])
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

func readSettings(args []string) (settings, error) {
	var s settings
	var products string
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.StringVar(&s.binary, "binary", "", "start this service on the real servers that SECKILLTEST_… names")
	f.StringVar(&s.target, "target", "", "or: buyers' door of a running service, with scheme")
	f.StringVar(&s.admin, "admin", "", "and its operators' door; its signing key in "+keyVariable)
	f.StringVar(&s.out, "out", "test/bench/out", "folder of result.json and the service's log")
	f.IntVar(&s.connections, "connections", 64, "buyers at a time")
	f.IntVar(&s.runs, "runs", 3, "rounds")
	f.IntVar(&s.buyers, "buyers", 40_000, "distinct buyers")
	f.DurationVar(&s.window, "window", 5*time.Second, "length of each measurement")
	f.StringVar(&products, "products", "1,200", "products on sale at once, one scenario each")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	for word := range strings.SplitSeq(products, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 || n > 10_000 {
			return s, fmt.Errorf("--products: %q is no number from 1 to 10000", word)
		}
		s.products = append(s.products, n)
	}
	s.key = os.Getenv(keyVariable)
	switch {
	case (s.binary == "") == (s.target == ""):
		return s, errors.New("either --binary or --target")
	case s.target != "" && (s.admin == "" || s.key == ""):
		return s, errors.New("--target needs --admin and " + keyVariable)
	case s.connections < 1 || s.runs < 1 || s.buyers < 1 || s.buyers > 1_000_000 || s.window < 100*time.Millisecond:
		return s, errors.New("connections, runs and buyers must be at least 1, the window at least 100ms")
	}
	if s.key == "" {
		var raw [32]byte
		_, _ = rand.Read(raw[:])
		s.key = hex.EncodeToString(raw[:])
	}
	return s, nil
}

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
	bare, err := startBare(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.stop()) }()
	if s.binary != "" {
		service, err := startService(ctx, &s)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, service.stop()) }()
	}
	b, err := newBench(s, tokens, bare.buyers)
	if err != nil {
		return err
	}
	result, err := b.rounds(ctx)
	if err != nil {
		return err
	}
	result.print(os.Stdout)
	return result.write(s.out)
}
