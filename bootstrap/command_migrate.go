package bootstrap

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"seckill/adapters/gormmysql"
	"seckill/adapters/rocketmq"
)

// topicQueues is how many queues `migrate up` gives the topic.
const topicQueues = 8

func (p *program) migrateCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "migrate", Short: "Bring the database's schema, and the broker's topic, up or down",
		Example: "  seckill migrate up\n  seckill migrate status"}
	up := &cobra.Command{Use: "up", Short: "Apply every migration; make the topic where rocketmq.broker is set",
		Example: "  seckill migrate up",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withStore(cmd.Context(), func(ctx context.Context, c Config, s *gormmysql.Store) error {
				if err := s.Migrate(ctx); err != nil {
					return err
				}
				if c.Embedded() || c.RocketMQ.Broker == "" {
					return nil
				}
				rocketmq.BridgeLogs(newLogger(c.Log, p.stderr))
				return rocketmq.EnsureTopic(ctx, rocketConfig(c), c.RocketMQ.Broker, topicQueues)
			})
		}}
	down := &cobra.Command{Use: "down", Short: "Take the newest migration back (its tables' data is lost)",
		Example: "  seckill migrate down --yes",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.confirmed(cmd.Context(), "This takes the newest migration back, and the data of its tables is lost"); err != nil {
				return err
			}
			return p.withStore(cmd.Context(), func(ctx context.Context, _ Config, s *gormmysql.Store) error {
				return s.MigrateDown(ctx)
			})
		}}
	status := &cobra.Command{Use: "status", Short: "List migrations and whether they are applied",
		Example: "  seckill migrate status -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.checkOutput(); err != nil {
				return err
			}
			return p.withStore(cmd.Context(), func(ctx context.Context, _ Config, s *gormmysql.Store) error {
				all, err := s.Status(ctx)
				if err != nil {
					return err
				}
				return p.print(all, func() {
					for _, m := range all {
						sayTo(p.stdout, "%v", m)
					}
				})
			})
		}}
	p.yesFlag(down)
	p.outputFlag(status)
	cmd.AddCommand(up, down, status)
	return cmd
}

// withStore opens the database alone, under the embedded folder's lock where it is that profile's.
func (p *program) withStore(ctx context.Context, do func(context.Context, Config, *gormmysql.Store) error) error {
	c, err := p.config()
	if err != nil {
		return err
	}
	opened := &closers{}
	defer opened.close(newLogger(c.Log, p.stderr))
	if c.Embedded() {
		if _, err := openDataFolder(c, opened); err != nil {
			return err
		}
	}
	s, err := openStore(c, opened, newLogger(c.Log, p.stderr))
	if err != nil {
		return fmt.Errorf("database: %w", err)
	}
	return do(ctx, c, s)
}
