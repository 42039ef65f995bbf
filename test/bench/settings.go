package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

const keyVariable = "SECKILL_AUTH__KEY"

// settings are what a run is told.
type settings struct {
	binary, target, admin, key, out    string
	connections, runs, buyers          int
	many, backlog, filled, groundSales int
	window, warmUp                     time.Duration
	figures                            []string // numbers of issue's table; empty: all
}

func readSettings(args []string) (settings, error) {
	var s settings
	var figures string
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.StringVar(&s.binary, "binary", "", "start this service on the real servers that SECKILLTEST_… names")
	f.StringVar(&s.target, "target", "", "or: buyers' door of a running service, with scheme; figures that need its process are not run")
	f.StringVar(&s.admin, "admin", "", "and its operators' door; its signing key in "+keyVariable)
	f.StringVar(&s.out, "out", "test/bench/out", "folder of result.json, detail.json and the servers' logs")
	f.IntVar(&s.connections, "connections", 512, "buyers at a time")
	f.IntVar(&s.runs, "runs", 3, "rounds that are recorded")
	f.IntVar(&s.buyers, "buyers", 40_000, "distinct buyers")
	f.IntVar(&s.many, "many", 1000, "products on sale at once, where there are many")
	f.IntVar(&s.backlog, "backlog", 200_000, "purchases that wait for the consumer")
	f.IntVar(&s.filled, "filled", 1_000_000, "flows that are already there, where there are many")
	f.IntVar(&s.groundSales, "ground", 100_000, "purchases after which the memory is taken as the ground")
	f.DurationVar(&s.window, "window", 5*time.Second, "length of each measurement")
	f.DurationVar(&s.warmUp, "warm-up", time.Minute, "sales before the first round: the broker's JVM is slow at first")
	f.StringVar(&figures, "figures", "", "figures to measure, by comma, as 1,3,5; empty: all")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	if err := s.choose(figures); err != nil {
		return s, err
	}
	s.key = os.Getenv(keyVariable)
	switch {
	case f.NArg() > 0:
		return s, fmt.Errorf("%q is no setting", f.Arg(0))
	case (s.binary == "") == (s.target == ""):
		return s, errors.New("either --binary or --target")
	case s.target != "" && (s.admin == "" || s.key == ""):
		return s, errors.New("--target needs --admin and " + keyVariable)
	case s.connections < 1 || s.runs < 1 || s.buyers < 1 || s.buyers > 1_000_000 || s.window < 100*time.Millisecond || s.warmUp < 0:
		return s, errors.New("connections, runs and buyers must be at least 1, the window at least 100ms")
	case s.many < 1 || s.many > 10_000 || s.backlog < 1 || s.filled < 1 || s.groundSales < 1 || s.groundSales > s.filled:
		return s, errors.New("many must be from 1 to 10000, backlog and filled at least 1, ground from 1 to filled")
	}
	if s.key == "" {
		var raw [32]byte
		_, _ = rand.Read(raw[:])
		s.key = hex.EncodeToString(raw[:])
	}
	return s, nil
}

// choose reads the numbers of figures.
func (s *settings) choose(list string) error {
	for word := range strings.SplitSeq(list, ",") {
		word = strings.TrimSpace(word)
		if word == "" {
			continue
		}
		known := false
		for _, f := range figures {
			known = known || f.number() == word
		}
		if !known {
			return fmt.Errorf("--figures: there is no figure %q", word)
		}
		s.figures = append(s.figures, word)
	}
	return nil
}

// wants says whether a figure is to be measured.
func (s *settings) wants(f figure) bool {
	for _, number := range s.figures {
		if number == f.number() {
			return true
		}
	}
	return len(s.figures) == 0
}
