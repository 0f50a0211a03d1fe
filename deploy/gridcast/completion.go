package main

import (
	"fmt"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"

	"gridcast/deploy/terminal"
)

// completionCmd prints the lines by which a shell asks this program to complete a command line.
type completionCmd struct {
	Shell string `arg:"" help:"${enum}." enum:"bash,zsh,fish"`
}

func (c *completionCmd) Run(k *kong.Context, s *terminal.Streams) error {
	if err := (&kongcompletion.Completion{Shell: c.Shell, Code: true}).Run(k); err != nil || c.Shell != "fish" {
		return err
	}
	// bash and zsh complete file names by themselves where the program offers nothing; fish does not.
	paths := map[string]bool{}
	err := kong.Visit(k.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok && flag.Tag.Type == "path" && !paths[flag.Name] {
			paths[flag.Name] = true
			s.Printf("complete -c gridcast -l %s -r -F\n", flag.Name)
		}
		return next(nil)
	})
	if err != nil {
		return fmt.Errorf("list the flags that name files: %w", err)
	}
	return nil
}
