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

// showProfile answers what the process spends its time on or holds, for "go tool pprof"; with debug=1 as text, where a
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
	kind := "application/octet-stream"
	if debug > 0 && profile != nil {
		kind = "text/plain; charset=utf-8"
	}
	c.Response().Header().Set("Content-Type", kind)
	if profile != nil {
		return profile.WriteTo(c.Response(), debug)
	}
	var taken bytes.Buffer // written to by a goroutine of the profiler until it is stopped
	if err := pprof.StartCPUProfile(&taken); err != nil {
		return domain.NewError(domain.CodeBusy, "a profile is being taken already", err)
	}
	timer := time.NewTimer(time.Duration(seconds) * time.Second)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	pprof.StopCPUProfile()
	return c.Blob(http.StatusOK, kind, taken.Bytes())
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
