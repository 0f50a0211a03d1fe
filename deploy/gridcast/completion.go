package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"gridcast/deploy/terminal"
)

// completionCmd prints what a shell needs to complete command lines, from the same model by which
// they are parsed.
type completionCmd struct {
	Shell string `arg:"" help:"${enum}." enum:"bash,zsh,fish"`
}

func (c *completionCmd) Run(k *kong.Context, s *terminal.Streams) error {
	commands := completions(k.Model.Node, nil)
	switch c.Shell {
	case "fish":
		s.Printf("%s", fishCompletion(commands))
		return nil
	case "zsh": // reads bash's form
		s.Printf("#compdef gridcast\nautoload -U +X bashcompinit && bashcompinit\n%s", bashCompletion(commands))
		return nil
	default:
		s.Printf("%s", bashCompletion(commands))
		return nil
	}
}

// completion is what may follow a command.
type completion struct {
	path  []string // the words of the command, without gridcast
	words []word   // commands below it, then flags
}

type word struct {
	text, help string
	values     []string // of a flag that takes one of a few
	takes      bool     // the next word is its value
	file       bool     // which is a path
}

// completions are those of a command and of all below it.
func completions(node *kong.Node, path []string) []completion {
	own := completion{path: path}
	var below []completion
	for _, child := range node.Children {
		if child.Hidden {
			continue
		}
		own.words = append(own.words, word{text: child.Name, help: child.Help})
		below = append(below, completions(child, append(slices.Clone(path), child.Name))...)
	}
	for _, argument := range node.Positional {
		for _, value := range argument.EnumSlice() {
			own.words = append(own.words, word{text: value, help: argument.Help})
		}
	}
	for _, group := range node.AllFlags(true) {
		for _, flag := range group {
			w := word{text: "--" + flag.Name, help: flag.Help, takes: !flag.IsBool(), file: flag.Tag.Type == "path"}
			if flag.Enum != "" {
				w.values = flag.EnumSlice()
			}
			own.words = append(own.words, w)
		}
	}
	return append([]completion{own}, below...)
}

// bashCompletion is a function that finds the command among the words so far, and offers what may
// follow it.
func bashCompletion(commands []completion) string {
	var follow, values strings.Builder
	for _, c := range commands {
		words := make([]string, len(c.words))
		for i, w := range c.words {
			words[i] = w.text
			switch {
			case len(w.values) > 0:
				fmt.Fprintf(&values, "    %q) COMPREPLY=($(compgen -W %q -- \"$word\")); return;;\n", strings.Join(append(slices.Clone(c.path), w.text), " "), strings.Join(w.values, " "))
			case w.file:
				fmt.Fprintf(&values, "    %q) COMPREPLY=($(compgen -f -- \"$word\")); return;;\n", strings.Join(append(slices.Clone(c.path), w.text), " "))
			case w.takes:
				fmt.Fprintf(&values, "    %q) return;;\n", strings.Join(append(slices.Clone(c.path), w.text), " "))
			}
		}
		fmt.Fprintf(&follow, "    %q) COMPREPLY=($(compgen -W %q -- \"$word\"));;\n", strings.Join(c.path, " "), strings.Join(words, " "))
	}
	paths := make([]string, len(commands))
	for i, c := range commands {
		paths[i] = "|" + strings.Join(c.path, " ")
	}
	return fmt.Sprintf(`_gridcast() {
  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" path="" i next
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    next="${path:+$path }${COMP_WORDS[i]}"
    case %s in *"|$next|"*) path="$next";; esac
  done
  [ "$before" = "=" ] && before="${COMP_WORDS[COMP_CWORD-2]}"
  [ "$word" = "=" ] && word="" before="${COMP_WORDS[COMP_CWORD-1]}"
  case "${path:+$path }$before" in
%s  esac
  case "$path" in
%s  esac
}
complete -o default -F _gridcast gridcast
`, quoteShell(strings.Join(paths, "")+"|"), values.String(), follow.String())
}

func quoteShell(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// fishCompletion is a line for each word, with its help.
func fishCompletion(commands []completion) string {
	var out strings.Builder
	out.WriteString(`function __gridcast_at
    set -l words
    for word in (commandline -opc)[2..]
        string match -q -- '-*' $word; or set -a words $word
    end
    test "$words" = "$argv"
end
complete -c gridcast -f
`)
	for _, c := range commands {
		at := quoteShell("__gridcast_at " + strings.Join(c.path, " "))
		for _, w := range c.words {
			help := quoteFish(w.help)
			name, isFlag := strings.CutPrefix(w.text, "--")
			switch {
			case !isFlag:
				fmt.Fprintf(&out, "complete -c gridcast -n %s -a %s -d %s\n", at, w.text, help)
			case len(w.values) > 0:
				fmt.Fprintf(&out, "complete -c gridcast -n %s -l %s -x -a %s -d %s\n", at, name, quoteFish(strings.Join(w.values, " ")), help)
			case w.file:
				fmt.Fprintf(&out, "complete -c gridcast -n %s -l %s -r -F -d %s\n", at, name, help)
			case w.takes:
				fmt.Fprintf(&out, "complete -c gridcast -n %s -l %s -x -d %s\n", at, name, help)
			default:
				fmt.Fprintf(&out, "complete -c gridcast -n %s -l %s -d %s\n", at, name, help)
			}
		}
	}
	return out.String()
}

// quoteFish quotes for fish, which knows two escapes between single quotes.
func quoteFish(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
}
