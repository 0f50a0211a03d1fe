// Ogen reads every endpoint of a running service with the client that ogen generates into the folder api.
// deploy/openapi/check.sh generates, compiles and runs it: ogen URL KEY. The client validates each answer.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"reflect"
	"regexp"
	"strings"

	"github.com/ogen-go/ogen/ogenerrors"

	"ogen/api"
)

// key is the API key of both security schemes. The service reads one of them.
type key string

func (k key) ApiKey(context.Context, api.OperationName) (api.ApiKey, error) {
	return api.ApiKey{APIKey: string(k)}, nil
}

// unserved are the operations that a demonstration, which signs nothing, answers with 404, and those that need a part of
// the path.
var unserved = regexp.MustCompile(`^Get(SecurityContact|Checkpoint|ManifestFile|Note|(Sandbox)?Portrait|Proof|Tile|VerifierKeys)$`)

func main() {
	client, err := api.NewClient(os.Args[1], key(os.Args[2]))
	if err != nil {
		log.Fatal(err)
	}
	read := 0
	methods := reflect.ValueOf(client)
	for i := range methods.NumMethod() {
		name := methods.Type().Method(i).Name
		if !strings.HasPrefix(name, "Get") || unserved.MatchString(name) {
			continue
		}
		call := methods.Method(i)
		arguments := []reflect.Value{reflect.ValueOf(context.Background())}
		for j := 1; j < call.Type().NumIn(); j++ {
			if call.Type().IsVariadic() && j == call.Type().NumIn()-1 {
				break
			}
			arguments = append(arguments, reflect.Zero(call.Type().In(j))) // no parameters
		}
		out := call.Call(arguments)
		if err := out[1].Interface(); err != nil {
			log.Fatalf("%s: %v", name, err)
		}
		if answer := fmt.Sprintf("%T", out[0].Interface()); !strings.Contains(answer, "Body") && !strings.Contains(answer, "OK") {
			log.Fatalf("%s: got %s", name, answer)
		}
		read++
	}
	fmt.Printf("ogen: %d endpoints read and validated\n", read)
}

// Bearer leaves its header out.
func (k key) Bearer(context.Context, api.OperationName) (api.Bearer, error) {
	return api.Bearer{}, ogenerrors.ErrSkipClientSecurity
}
