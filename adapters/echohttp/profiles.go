package echohttp

import (
	"bytes"
	"context"
	"net/http"
	"runtime/pprof"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"seckill/domain"
)

const (
	profileCPU        = "profile" // as net/http/pprof calls it
	profileSeconds    = 10
	profileSecondsMax = 60
)

// showProfile answers what the process spends its time on or holds, for "go tool pprof"; with debug as text, where a
// profile has one.
func (d operatorsDoor) showProfile(ctx context.Context, c echo.Context, _ Identity) error {
	name := c.Param("profile")
	profile := pprof.Lookup(name)
	if profile == nil && name != profileCPU {
		return echo.ErrNotFound
	}
	seconds, err := profileNumber(c, "seconds", profileSeconds, 1, profileSecondsMax)
	if err != nil {
		return err
	}
	debug, err := profileNumber(c, "debug", 0, 0, 2)
	if err != nil {
		return err
	}
	var taken bytes.Buffer
	kind := typeBinary
	if profile == nil {
		err = takeCPUProfile(ctx, &taken, time.Duration(seconds)*time.Second)
	} else {
		if debug > 0 {
			kind = typeText
		}
		err = profile.WriteTo(&taken, debug)
	}
	if err != nil {
		return err
	}
	return d.answer(c, http.StatusOK, kind, taken.Bytes())
}

// takeCPUProfile takes it for some time, or until ctx ends.
func takeCPUProfile(ctx context.Context, to *bytes.Buffer, while time.Duration) error {
	if err := pprof.StartCPUProfile(to); err != nil {
		return domain.NewError(domain.CodeBusy, "a profile is being taken already", err)
	}
	defer pprof.StopCPUProfile() // until then a goroutine of the profiler writes
	timer := time.NewTimer(while)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}

func profileNumber(c echo.Context, name string, otherwise, least, most int) (int, error) {
	text := c.QueryParam(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, badInput("query", name, "must be from "+strconv.Itoa(least)+" to "+strconv.Itoa(most))
	}
	return n, nil
}
