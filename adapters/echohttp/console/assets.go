package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"sync"
)

//go:embed assets/app.css assets/app.js assets/icon.svg vendor/uplot/uPlot.iife.min.js vendor/uplot/uPlot.min.css
var files embed.FS

// asset is a file as it is served.
type asset struct {
	body      []byte
	packed    func() []byte // by gzip; made when it is first asked for
	kind, tag string
}

// assets are all of them, by the name that the page knows.
var assets = map[string]asset{
	"app.css":   load("assets/app.css", "text/css; charset=utf-8"),
	"app.js":    load("assets/app.js", "text/javascript; charset=utf-8"),
	"icon.svg":  load("assets/icon.svg", "image/svg+xml"),
	"uplot.js":  load("vendor/uplot/uPlot.iife.min.js", "text/javascript; charset=utf-8"),
	"uplot.css": load("vendor/uplot/uPlot.min.css", "text/css; charset=utf-8"),
}

func load(name, kind string) asset {
	body, err := files.ReadFile(name)
	if err != nil {
		panic("console: " + err.Error()) // embedded, or it would not compile
	}
	sum := sha256.Sum256(body)
	return asset{body, sync.OnceValue(func() []byte { return pack(body) }), kind, `"` + hex.EncodeToString(sum[:8]) + `"`}
}

func pack(body []byte) []byte {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(body)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic("console: " + err.Error()) // a buffer takes everything
	}
	return out.Bytes()
}
