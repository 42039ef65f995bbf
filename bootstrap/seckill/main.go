// Command seckill sells few units to very many buyers within seconds.
package main

import (
	"os"

	"seckill/bootstrap"
)

// version is set by the linker.
var version = "dev"

func main() {
	os.Exit(bootstrap.Main(os.Args[1:], os.Stdout, os.Stderr, version))
}
