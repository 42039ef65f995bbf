// Command table prints what the fault campaign showed, as a markdown table.
//
//	table [LAYER…]   the layers named, or all whose figures lie in test/fault/out
//
// It ends with 4 when a violation was found, a test failed, or a layer that is named has no figures;
// with 1 when the figures could not be read.
package main

import (
	"fmt"
	"os"

	"seckill/test/fault/campaign"
)

const exitViolation = 4

func main() {
	folder, err := campaign.Folder()
	if err == nil {
		var found map[string]campaign.Figures
		if found, err = campaign.Read(folder); err == nil {
			text, clean := campaign.Table(found, os.Args[1:])
			fmt.Print(text)
			if !clean {
				os.Exit(exitViolation)
			}
			return
		}
	}
	fmt.Fprintln(os.Stderr, "table:", err)
	os.Exit(1)
}
