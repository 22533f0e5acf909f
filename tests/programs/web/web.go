// An HTTP server that sends back what it is sent, and a client that checks it: `web serve PORT`, `web ask PORT CLIENTS`.
package main

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"sync"
)

const requests = 400

func main() {
	address := "127.0.0.1:" + os.Args[2]
	if os.Args[1] == "serve" {
		log.Fatal(http.ListenAndServe(address, http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
			body, err := io.ReadAll(request.Body)
			if err != nil {
				http.Error(answer, err.Error(), http.StatusBadRequest)
				return
			}
			answer.Write(body)
		})))
	}
	clients, err := strconv.Atoi(os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	var all sync.WaitGroup
	for client := 0; client < clients; client++ {
		all.Add(1)
		go func(client int) {
			defer all.Done()
			for number := client; number < requests; number += clients {
				ask(address, number)
			}
		}(client)
	}
	all.Wait()
	fmt.Println(requests, "answers")
}

func ask(address string, number int) {
	body := bytes.Repeat([]byte(fmt.Sprintf("request %d\n", number)), 1+number*number%5000)
	answer, err := http.Post("http://"+address+"/", "text/plain", bytes.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if err != nil {
		log.Fatal(err)
	}
	if !bytes.Equal(got, body) {
		log.Fatalf("request %d: %d bytes came back, not the %d that were sent", number, len(got), len(body))
	}
}
