package redislua

import (
	"embed"

	"github.com/redis/go-redis/v9"
)

//go:embed script/*.lua
var scriptFiles embed.FS

var (
	deductScript    = recordScript("deduct")
	checkScript     = recordScript("check")
	adoptScript     = recordScript("adopt")
	tellScript      = recordScript("tell")
	viewScript      = recordScript("view")
	shutScript      = recordScript("shut")
	prepareScript   = recordScript("prepare")
	writeBackScript = recordScript("writeback")
	rebuildScript   = recordScript("rebuild")
	openScript      = recordScript("open")
	termsScript     = recordScript("terms")
	claimScript     = redis.NewScript(scriptText("claim"))
)

func recordScript(name string) *redis.Script {
	return redis.NewScript(scriptText("record") + scriptText(name))
}

func scriptText(name string) string {
	text, err := scriptFiles.ReadFile("script/" + name + ".lua")
	if err != nil {
		panic(err) // the file is part of the binary
	}
	return string(text)
}
