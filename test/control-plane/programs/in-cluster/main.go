// A pod's own client of the API server, configured as client-go does it inside a cluster: by the
// two variables of the kubelet and the files of the service account, and by nothing else. Over HTTP
// at :8080 it says what it gets: /get?name=NAME of one ConfigMap that is read now, /informed of all
// that its informer holds.
package main

import (
	"encoding/json"
	"log"
	"net/http"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// The ConfigMaps that a client has, each with its data, or why it has none.
type said struct {
	Host       string                       `json:"host"`
	ConfigMaps map[string]map[string]string `json:"configMaps,omitempty"`
	Error      string                       `json:"error,omitempty"`
}

func main() {
	config, err := rest.InClusterConfig()
	if err != nil {
		log.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	namespace, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		log.Fatal(err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, time.Hour, informers.WithNamespace(string(namespace)))
	configMaps := factory.Core().V1().ConfigMaps()
	informer := configMaps.Informer()
	factory.Start(make(chan struct{}))

	http.HandleFunc("/get", func(answer http.ResponseWriter, request *http.Request) {
		name := request.URL.Query().Get("name")
		found, err := client.CoreV1().ConfigMaps(string(namespace)).Get(request.Context(), name, metav1.GetOptions{})
		if err != nil {
			say(answer, said{Host: config.Host, Error: err.Error()})
			return
		}
		say(answer, said{Host: config.Host, ConfigMaps: map[string]map[string]string{name: found.Data}})
	})
	http.HandleFunc("/informed", func(answer http.ResponseWriter, _ *http.Request) {
		if !informer.HasSynced() {
			say(answer, said{Host: config.Host, Error: "not synced"})
			return
		}
		all, err := configMaps.Lister().List(labels.Everything())
		if err != nil {
			say(answer, said{Host: config.Host, Error: err.Error()})
			return
		}
		held := map[string]map[string]string{}
		for _, each := range all {
			held[each.Name] = each.Data
		}
		say(answer, said{Host: config.Host, ConfigMaps: held})
	})
	log.Fatal(http.ListenAndServe(":8080", nil))
}

func say(answer http.ResponseWriter, what said) {
	if err := json.NewEncoder(answer).Encode(what); err != nil {
		log.Print(err)
	}
}
