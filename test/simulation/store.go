package simulation

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"seckill/adapters/redislua"
)

// The errors of a driver whose connection broke, or was never made.
var (
	errBroken = io.ErrUnexpectedEOF
	errNoDial = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
)

// askIdentity stands where a script is told the server's identity: the store puts its own there
// when it carries the script out, as a script on a real server reads it then.
const askIdentity = "identity-of-the-server"

const scriptFolder = "../../adapters/redislua/script"

// store is Redis: miniredis with the service's own scripts.
type store struct {
	mini     *miniredis.Miniredis
	identity string
	servers  int
	scripts  map[string]string // name by sha1
	swaps    map[string]string // text by the sha1 of the script that it stands for
	blind    bool              // the scripts are told nothing of identity and memory
	noCache  func()            // called when a script was not cached
}

// scriptTexts are the service's scripts as it sends them.
func scriptTexts() (map[string]string, error) {
	record, err := os.ReadFile(filepath.Join(scriptFolder, "record.lua"))
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(scriptFolder, "*.lua"))
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(filepath.Base(file), ".lua")
		texts[name] = string(record) + string(body)
		if name == "claim" {
			texts[name] = string(body)
		}
	}
	delete(texts, "record")
	return texts, nil
}

func sha(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

func newStore(texts map[string]string, bad variant) *store {
	s := &store{mini: miniredis.NewMiniRedis(), scripts: map[string]string{}, swaps: map[string]string{}, blind: bad.blind}
	for name, text := range texts {
		s.scripts[sha(text)] = name
		if swap := bad.script; swap != nil {
			if other := swap(name, text); other != text {
				s.swaps[sha(text)] = other
			}
		}
	}
	s.moveServer()
	return s
}

// moveServer is a restart or a promotion: another replication history, and no script is cached.
func (s *store) moveServer() {
	s.servers++
	s.identity = fmt.Sprintf("server-%d", s.servers)
}

// picture copies everything that the store holds.
func (s *store) picture() func() {
	hashes, sets := map[string][]string{}, map[string]map[string]float64{}
	for _, key := range s.mini.Keys() {
		switch s.mini.Type(key) {
		case "hash":
			fields, _ := s.mini.HKeys(key)
			for _, f := range fields {
				hashes[key] = append(hashes[key], f, s.mini.HGet(key, f))
			}
		case "zset":
			live, _ := s.mini.SortedSet(key)
			sets[key] = maps.Clone(live)
		}
	}
	return func() {
		s.mini.FlushAll()
		for key, fields := range hashes {
			s.mini.HSet(key, fields...)
		}
		for key, set := range sets {
			for member, score := range set {
				_, _ = s.mini.ZAdd(key, score, member)
			}
		}
	}
}

// flows are the packed flows that the store holds, by product|user|token.
func (s *store) flows() map[string]string {
	flows := map[string]string{}
	for _, key := range s.mini.Keys() {
		_, rest, _ := strings.Cut(key, ":{")
		product, user, isFlow := strings.Cut(rest, "}@")
		if !isFlow {
			continue
		}
		tokens, _ := s.mini.HKeys(key)
		for _, token := range tokens {
			flows[product+"|"+user+"|"+token] = s.mini.HGet(key, token)
		}
	}
	return flows
}

// hook stands between an instance's client and the store.
type hook struct {
	w    *world
	inst *instance
}

func (s *store) client(w *world, inst *instance) redis.UniversalClient {
	options := redislua.Options(redislua.ClientConfig{Addrs: []string{"in-process:0"}})
	options.Dialer = func(context.Context, string, string) (net.Conn, error) { return s.mini.Dial() }
	client := redis.NewUniversalClient(options)
	client.AddHook(hook{w, inst})
	return client
}

type whoKey struct{}

// by names the use case whose calls are made with ctx.
func by(ctx context.Context, who string) context.Context {
	return context.WithValue(ctx, whoKey{}, who)
}

func (h hook) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (h hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		who, _ := ctx.Value(whoKey{}).(string)
		if who == "" || !slices.Contains([]string{"evalsha", "eval", "zrangebyscore", "hget"}, commands[0].Name()) {
			return next(ctx, commands) // the driver's own, or the judge's
		}
		st := h.w.store
		what, effect := st.describe(commands)
		args := make([]string, len(commands))
		for i, c := range commands {
			args[i] = strings.Trim(fmt.Sprint(c.Args()[2:]), "[]")
		}
		var err error
		c := &call{inst: h.inst, to: toRedis, who: who, what: what, args: strings.Join(args, ";"), effect: effect, once: what == "deduct"}
		if effect {
			c.late = func() { _ = st.carryOut(context.Background(), next, commands, nil) }
		}
		lost := h.w.pass(ctx, c, func() { err = st.carryOut(ctx, next, commands, h.w.note) })
		if lost == nil {
			return err
		}
		var refused refusedError
		switch err = errBroken; {
		case errors.As(lost, &refused):
			err = errNoDial
		case ctx.Err() != nil:
			err = ctx.Err()
		}
		for _, c := range commands {
			c.SetErr(err)
		}
		return err
	}
}

// readScripts change nothing.
var readScripts = []string{"check", "view"}

func (s *store) describe(commands []redis.Cmder) (what string, effect bool) {
	name := commands[0].Name()
	switch name {
	case "evalsha":
		name = s.scripts[fmt.Sprint(commands[0].Args()[1])]
	case "eval":
		name = s.scripts[sha(fmt.Sprint(commands[0].Args()[1]))]
	default:
		return name, false
	}
	return name, !slices.Contains(readScripts, name)
}

// carryOut runs commands on the store, as copies, since a late one must not write into what its
// caller reads; heard takes the replies to those that wait for them.
func (s *store) carryOut(ctx context.Context, next redis.ProcessPipelineHook, commands []redis.Cmder, heard func(string, ...any)) error {
	if commands[0].Name() != "evalsha" && commands[0].Name() != "eval" {
		return next(ctx, commands)
	}
	copies := make([]redis.Cmder, len(commands))
	for i, c := range commands {
		copies[i] = redis.NewCmd(ctx, s.rewrite(c.Args())...)
	}
	err := next(ctx, copies)
	for i := range commands {
		reply := copies[i].(*redis.Cmd)
		if heard != nil {
			commands[i].(*redis.Cmd).SetVal(reply.Val())
			commands[i].SetErr(reply.Err())
			if redis.HasErrorPrefix(reply.Err(), "NOSCRIPT") {
				s.noCache()
			}
			heard("  %s", fmt.Sprint(reply.Val(), reply.Err()))
		}
	}
	return err
}

// rewrite puts the server's identity, and the text of a swapped script, in their places.
func (s *store) rewrite(args []any) []any {
	args = slices.Clone(args)
	text := fmt.Sprint(args[1])
	id := text
	if args[0] == "eval" {
		id = sha(text)
	}
	if swap, swapped := s.swaps[id]; swapped {
		args[0], args[1] = "eval", swap
	}
	var keys int
	_, _ = fmt.Sscan(fmt.Sprint(args[2]), &keys)
	if at := 3 + keys; at < len(args) && args[at] == askIdentity {
		args[at] = s.identity
		if s.blind {
			args[at], args[at+1], args[at+2], args[at+3] = blindIdentity, "0", "0", ""
		}
	}
	return args
}
