package harness

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	_ "github.com/go-sql-driver/mysql" // the driver of the probe
)

// mysqlUser may do everything, from 127.0.0.1 only; the server lives for one run.
const mysqlUser, mysqlPassword = "seckilltest", "seckilltest"

func (s *Stack) startMySQL(ctx context.Context) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	dir, err := s.folder("mysql")
	if err != nil {
		return err
	}
	attr, err := mysqlAccount(dir)
	if err != nil {
		return err
	}
	data, init := filepath.Join(dir, "data"), filepath.Join(dir, "init.sql")
	grant := fmt.Sprintf("CREATE USER IF NOT EXISTS '%[1]s'@'127.0.0.1' IDENTIFIED BY '%[2]s';\nGRANT ALL ON *.* TO '%[1]s'@'127.0.0.1' WITH GRANT OPTION;\n", mysqlUser, mysqlPassword)
	if err := os.WriteFile(init, []byte(grant), 0o644); err != nil {
		return err
	}
	install := exec.CommandContext(ctx, find("mariadb-install-db"), "--no-defaults", "--datadir="+data,
		"--auth-root-authentication-method=normal", "--skip-test-db")
	install.SysProcAttr = attr()
	if out, err := install.CombinedOutput(); err != nil {
		return fmt.Errorf("mariadb-install-db: %w\n%s", err, out)
	}
	clock, err := s.newClock("mysql")
	if err != nil {
		return err
	}
	addr := loopback(port)
	s.MySQL = s.add(&Server{
		Name:    "mysql",
		Addr:    addr,
		clock:   clock,
		logFile: filepath.Join(s.dir, "mysql.log"),
		command: clock.in(func() *exec.Cmd {
			// The socket's name is relative to the data folder: a full path
			// could exceed the 108 characters that a socket may have.
			cmd := exec.Command(find("mariadbd"), "--no-defaults", "--datadir="+data, "--socket=s.sock",
				"--pid-file=p.pid", "--port="+strconv.Itoa(port), "--bind-address=127.0.0.1", "--skip-name-resolve",
				"--skip-log-bin", "--innodb-flush-log-at-trx-commit=1", "--max-connections=500", "--init-file="+init)
			cmd.SysProcAttr = attr()
			return cmd
		}),
		ready: func(ctx context.Context) error {
			db, err := sql.Open("mysql", mysqlDSN(addr))
			if err != nil {
				return err
			}
			defer db.Close()
			return db.PingContext(ctx)
		},
	})
	return s.MySQL.Start(ctx)
}

func mysqlDSN(addr string) string {
	return fmt.Sprintf("%s:%s@tcp(%s)/", mysqlUser, mysqlPassword, addr)
}

// mysqlAccount gives dir to the user mysql and says how to run as that user: the
// server refuses to run as root. We switch ourselves instead of passing --user,
// because a process that changes its user loses its parent-death signal. Where
// we are not root, the server runs as we do.
func mysqlAccount(dir string) (func() *syscall.SysProcAttr, error) {
	if os.Geteuid() != 0 {
		return func() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }, nil
	}
	account, err := user.Lookup("mysql")
	if err != nil {
		return nil, fmt.Errorf("the user mysql comes with the package mariadb-server: %w", err)
	}
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("uid of mysql: %w", err)
	}
	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("gid of mysql: %w", err)
	}
	if err := os.Chown(dir, int(uid), int(gid)); err != nil {
		return nil, err
	}
	return func() *syscall.SysProcAttr {
		return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}, nil
}
