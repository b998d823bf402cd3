package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cairn/internal/server"
	"cairn/internal/token"
)

func (a *app) tokenCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke the tokens of `cairn serve`",
		Long: `Make, list and revoke the tokens of ` + "`cairn serve`" + `.

They are kept, hashed, in the file named by --tokens, else CAIRN_TOKENS, else
cairn/tokens.json in your configuration folder. A server notices each change.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&file, "tokens", "", "file of the tokens (also CAIRN_TOKENS)")
	cmd.AddCommand(a.tokenNewCommand(&file), a.tokenListCommand(&file), a.tokenRevokeCommand(&file))
	return cmd
}

// tokenStore is the store in the file that is named, else the user's.
func tokenStore(file string) (*token.Store, error) {
	if file == "" {
		file = os.Getenv("CAIRN_TOKENS")
	}
	if file == "" {
		dir, err := os.UserConfigDir()
		if err != nil {
			return nil, fmt.Errorf("no place for the tokens: %w; name one with --tokens", err)
		}
		file = filepath.Join(dir, "cairn", "tokens.json")
	}
	return token.Open(file, nil), nil
}

func (a *app) tokenNewCommand(file *string) *cobra.Command {
	var scope string
	var workspaces []string
	var expires time.Duration
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Make a token and print it, once",
		Example: `  cairn token new ann
  cairn token new agent --scope write --for notes --expires 720h`,
		Args: cobra.ExactArgs(1),
		RunE: a.command(func(ctx context.Context, args []string) error {
			return a.tokenNew(ctx, *file, args[0], scope, workspaces, expires)
		}),
	}
	cmd.Flags().StringVar(&scope, "scope", "read", "what it permits: read, or write as well")
	cmd.Flags().StringSliceVar(&workspaces, "for", nil, "names of the workspaces it is good for (default: all)")
	cmd.Flags().DurationVar(&expires, "expires", 0, "how long it is good for, such as 720h (default: until revoked)")
	return cmd
}

func (a *app) tokenNew(ctx context.Context, file, name, scope string, workspaces []string, expires time.Duration) error {
	sc, err := token.ParseScope(scope)
	if err != nil {
		return badUsage("--scope: %w", err)
	}
	for _, w := range workspaces {
		if _, err := server.ParseName(w); err != nil {
			return badUsage("--for: %w", err)
		}
	}
	if expires < 0 {
		return badUsage("--expires is %s, want more than 0", expires)
	}
	store, err := tokenStore(file)
	if err != nil {
		return err
	}
	secret, t, err := store.New(ctx, name, sc, workspaces, expires)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(struct {
			Secret string `json:"token"`
			tokenRow
		}{secret, rowOf(t)})
	}
	if _, err := fmt.Fprintln(a.stdout, secret); err != nil {
		return err
	}
	fmt.Fprintf(a.stderr, "this is the only time it is shown; clients send it as Authorization: Bearer TOKEN\n")
	return nil
}

// tokenRow is a token as it is listed: without its hash.
type tokenRow struct {
	ID         string      `json:"id"`
	Name       string      `json:"name"`
	Scope      token.Scope `json:"scope"`
	Workspaces []string    `json:"workspaces"`
	Created    time.Time   `json:"created"`
	Expires    time.Time   `json:"expires,omitzero"`
	Expired    bool        `json:"expired,omitempty"`
}

func rowOf(t token.Token) tokenRow {
	return tokenRow{t.ID, t.Name, t.Scope, append([]string{}, t.Workspaces...), t.Created, t.Expires, !t.Expires.IsZero() && !time.Now().Before(t.Expires)}
}

func (a *app) tokenListCommand(file *string) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the tokens, without their secrets",
		Example: `  cairn token list --json`,
		Args:    cobra.NoArgs,
		RunE:    a.command(func(context.Context, []string) error { return a.tokenList(*file) }),
	}
}

func (a *app) tokenList(file string) error {
	store, err := tokenStore(file)
	if err != nil {
		return err
	}
	list, err := store.List()
	if err != nil {
		return err
	}
	rows := []tokenRow{}
	for _, t := range list {
		rows = append(rows, rowOf(t))
	}
	if a.json {
		return a.printJSON(rows)
	}
	if len(rows) == 0 {
		fmt.Fprintln(a.stderr, "there are no tokens; `cairn token new NAME` makes one")
		return nil
	}
	for _, r := range rows {
		good, until := "all workspaces", "until revoked"
		if len(r.Workspaces) > 0 {
			good = strings.Join(r.Workspaces, ",")
		}
		switch {
		case r.Expired:
			until = "expired " + r.Expires.Local().Format(time.DateTime)
		case !r.Expires.IsZero():
			until = "until " + r.Expires.Local().Format(time.DateTime)
		}
		if _, err := fmt.Fprintf(a.stdout, "%s  %-5s  %-20s  %s, %s\n", r.ID, r.Scope, r.Name, good, until); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) tokenRevokeCommand(file *string) *cobra.Command {
	return &cobra.Command{
		Use:     "revoke ID|NAME",
		Short:   "Make a token worthless at once",
		Example: `  cairn token revoke ann`,
		Args:    cobra.ExactArgs(1),
		RunE: a.command(func(ctx context.Context, args []string) error {
			store, err := tokenStore(*file)
			if err != nil {
				return err
			}
			t, err := store.Revoke(ctx, args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(rowOf(t))
			}
			_, err = fmt.Fprintf(a.stdout, "revoked %s (%s)\n", t.ID, t.Name)
			return err
		}),
	}
}
