package bootstrap

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"seckill/application"
	"seckill/application/port"
)

// completeMax is how long a shell waits for what a service knows.
const completeMax = time.Second

// flagValues are the values of flags that have few.
var flagValues = map[string][]string{
	"output":  {outputText, outputJSON, outputLines},
	"profile": {ProfileEmbedded, ProfileStack},
	"policy":  {string(application.PolicySendAgain), string(application.PolicyReportOnly), string(application.PolicyRollBack)},
	"scope":   slices.Concat(buyerScopes, operatorScopes),
	"reason":  reasons(),
}

func reasons() []string {
	words := make([]string, len(port.ParkReasons))
	for i, r := range port.ParkReasons {
		words[i] = string(r)
	}
	return words
}

// addCompletion lets a shell complete the values of flags, and product ids wherever they stand.
func (p *program) addCompletion(cmd *cobra.Command) {
	complete := func(flag string, f cobra.CompletionFunc) {
		if cmd.LocalFlags().Lookup(flag) != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag, f) // fails only for a flag that is not there, or twice
		}
	}
	for flag, values := range flagValues {
		complete(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	complete("product", p.completeProduct)
	if use := strings.Fields(cmd.Use); len(use) > 1 && (use[1] == "PRODUCT" || cmd.Name() == "products") {
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return p.completeProduct(cmd, args, begun)
		}
	}
	for _, c := range cmd.Commands() {
		p.addCompletion(c)
	}
}

// completeProduct asks a running service which products there are, and keeps quiet where there is none.
func (p *program) completeProduct(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(context.Background(), completeMax)
	defer cancel()
	var door doorFlags
	if f := cmd.Flags().Lookup("admin"); f != nil {
		door = doorFlags{admin: f.Value.String(), token: cmd.Flags().Lookup("token").Value.String()}
	}
	c, err := p.config()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	client, err := door.client(ctx, c)
	if err != nil || client == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	views, err := client.products(ctx, "")
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var ids []string
	for _, v := range views {
		if strings.HasPrefix(v.Product, begun) {
			ids = append(ids, v.Product)
		}
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}
