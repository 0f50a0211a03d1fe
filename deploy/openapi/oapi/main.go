// Oapi reads every endpoint of a running service with the client that oapi-codegen generates into the folder
// api. deploy/openapi/check.sh generates, compiles and runs it: oapi URL KEY.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"strings"

	api "oapi/api" // package gridcast, as a release has it
)

// unserved are the operations that a demonstration, which signs nothing, answers with 404, and those that need a part of
// the path.
var unserved = regexp.MustCompile(`^Get(SecurityContact|Checkpoint|ManifestFile|Note|(Sandbox)?Portrait|Proof|Tile|VerifierKeys)WithResponse$`)

func main() {
	client, err := api.NewClientWithResponses(os.Args[1], api.WithRequestEditorFn(func(_ context.Context, request *http.Request) error {
		request.Header.Set("X-API-Key", os.Args[2])
		return nil
	}))
	if err != nil {
		log.Fatal(err)
	}
	read := 0
	methods := reflect.ValueOf(client)
	for i := range methods.NumMethod() {
		name := methods.Type().Method(i).Name
		if !strings.HasSuffix(name, "WithResponse") || unserved.MatchString(name) {
			continue
		}
		call := methods.Method(i)
		arguments := []reflect.Value{reflect.ValueOf(context.Background())}
		for j := 1; j < call.Type().NumIn()-1; j++ {
			arguments = append(arguments, reflect.Zero(call.Type().In(j))) // no parameters
		}
		out := call.Call(arguments)
		if err := out[1].Interface(); err != nil {
			log.Fatalf("%s: %v", name, err)
		}
		response := out[0].Elem()
		if status := response.FieldByName("HTTPResponse").Interface().(*http.Response).StatusCode; status != http.StatusOK {
			log.Fatalf("%s: got status %d, want 200", name, status)
		}
		if decoded := response.FieldByName("JSON200"); decoded.IsValid() && decoded.IsNil() {
			log.Fatalf("%s: the answer was not decoded", name)
		}
		read++
	}
	calendar, err := client.GetCalendarWithResponse(context.Background(), &api.GetCalendarParams{})
	if err != nil {
		log.Fatal(err)
	}
	for _, round := range calendar.JSON200.Data {
		if round.Status == api.CalendarEntryStatusFinished && round.Winner == nil {
			log.Fatalf("the finished %s has no winner", round.GpName)
		}
	}
	fmt.Printf("oapi-codegen: %d endpoints read\n", read)
}
