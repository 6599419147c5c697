// Reflectors of client-go against whatever API server a kubeconfig names: what informers of
// kubelets, kube-proxies and controllers hold, and how they came by it. At "show" on standard input
// it writes one line of JSON, at "print" one with all that it holds, as its types know it, at
// "events" one with all events of its watches; at "stop", or at the end of its input, it exits.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// What one reflector reads.
type followed struct {
	resource string
	selector fields.Selector
	store    cache.Store
	// Requests for a whole collection (list or WatchList), and watches that went on from a version.
	lists, watchLists, watches atomic.Int64
	reflector                  *cache.Reflector
	// What watches have told, and how many of them began before the one before had lasted its time.
	mutex  sync.Mutex
	events []string
	early  int64
	due    time.Time
}

// told keeps what an event said, as "ADDED default/name 12".
func (one *followed) told(event watch.Event) (watch.Event, bool) {
	if object, err := meta.Accessor(event.Object); err == nil && event.Type != watch.Bookmark {
		one.mutex.Lock()
		defer one.mutex.Unlock()
		one.events = append(one.events, fmt.Sprintf("%s %s/%s %s",
			event.Type, object.GetNamespace(), object.GetName(), object.GetResourceVersion()))
	}
	return event, true
}

// begins counts a watch: early where the one before was to last for longer.
func (one *followed) begins(options metav1.ListOptions) {
	one.mutex.Lock()
	defer one.mutex.Unlock()
	now := time.Now()
	if now.Before(one.due) {
		one.early++
	}
	if options.TimeoutSeconds != nil {
		one.due = now.Add(time.Duration(*options.TimeoutSeconds) * time.Second)
	}
}

type shown struct {
	// Resource version by namespace and name.
	Objects         map[string]string `json:"objects"`
	ResourceVersion string            `json:"resourceVersion"`
	Lists           int64             `json:"lists"`
	WatchLists      int64             `json:"watchLists"`
	Watches         int64             `json:"watches"`
	Early           int64             `json:"early"`
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the API server to follow")
	agent := flag.String("user-agent", "kubelet/v1.35.0 (linux/amd64) kubernetes/reflector", "the component to be")
	encoding := flag.String("encoding", "protobuf", "protobuf or json")
	what := flag.String("follow", "pods,configmaps,secrets,services,endpointslices",
		"resources, comma-separated; each may be followed by ? and a field selector")
	labels := flag.String("labels", "", "a label selector for all of them")
	flag.Parse()
	if err := run(*kubeconfig, *agent, *encoding, *what, *labels); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(kubeconfig, agent, encoding, what, labels string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.UserAgent = agent
	config.QPS = -1
	config.ContentType = runtime.ContentTypeJSON
	if encoding == "protobuf" {
		config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
		config.ContentType = runtime.ContentTypeProtobuf
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	stop := make(chan struct{})
	defer close(stop)
	all := map[string]*followed{}
	for _, each := range strings.Split(what, ",") {
		resource, text, _ := strings.Cut(each, "?")
		selector, err := fields.ParseSelector(text)
		if err != nil {
			return err
		}
		one, err := follow(clients, resource, selector, labels)
		if err != nil {
			return err
		}
		all[each] = one
		go one.reflector.Run(stop)
	}
	return obey(all)
}

func follow(clients *kubernetes.Clientset, resource string, selector fields.Selector, labels string) (*followed, error) {
	client, expected, err := serving(clients, resource)
	if err != nil {
		return nil, err
	}
	one := &followed{resource: resource, selector: selector, store: cache.NewStore(cache.MetaNamespaceKeyFunc)}
	source := cache.NewFilteredListWatchFromClient(client, resource, metav1.NamespaceAll, func(options *metav1.ListOptions) {
		options.FieldSelector = selector.String()
		options.LabelSelector = labels
	})
	counted := &cache.ListWatch{
		ListFunc: func(options metav1.ListOptions) (runtime.Object, error) {
			one.lists.Add(1)
			return source.List(options)
		},
		WatchFunc: func(options metav1.ListOptions) (watch.Interface, error) {
			if options.SendInitialEvents != nil && *options.SendInitialEvents {
				one.watchLists.Add(1)
			} else {
				one.watches.Add(1)
			}
			one.begins(options)
			watched, err := source.Watch(options)
			if err != nil {
				return nil, err
			}
			return watch.Filter(watched, one.told), nil
		},
	}
	one.reflector = cache.NewReflectorWithOptions(
		cache.ToListWatcherWithWatchListSemantics(counted, clients), expected, one.store,
		cache.ReflectorOptions{Name: resource, MinWatchTimeout: time.Minute},
	)
	return one, nil
}

func serving(clients *kubernetes.Clientset, resource string) (rest.Interface, runtime.Object, error) {
	switch resource {
	case "pods":
		return clients.CoreV1().RESTClient(), &corev1.Pod{}, nil
	case "configmaps":
		return clients.CoreV1().RESTClient(), &corev1.ConfigMap{}, nil
	case "secrets":
		return clients.CoreV1().RESTClient(), &corev1.Secret{}, nil
	case "services":
		return clients.CoreV1().RESTClient(), &corev1.Service{}, nil
	case "endpoints":
		return clients.CoreV1().RESTClient(), &corev1.Endpoints{}, nil
	case "endpointslices":
		return clients.DiscoveryV1().RESTClient(), &discoveryv1.EndpointSlice{}, nil
	}
	return nil, nil, fmt.Errorf("no reflector for %q", resource)
}

func obey(all map[string]*followed) error {
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		switch orders.Text() {
		case "show":
			if err := show(all); err != nil {
				return err
			}
		case "print":
			if err := print(all); err != nil {
				return err
			}
		case "events":
			if err := events(all); err != nil {
				return err
			}
		case "stop":
			return nil
		}
	}
	return orders.Err()
}

func show(all map[string]*followed) error {
	line := map[string]shown{}
	for name, one := range all {
		objects := map[string]string{}
		for _, held := range one.store.List() {
			object, err := meta.Accessor(held)
			if err != nil {
				return err
			}
			objects[object.GetNamespace()+"/"+object.GetName()] = object.GetResourceVersion()
		}
		one.mutex.Lock()
		early := one.early
		one.mutex.Unlock()
		line[name] = shown{
			Objects:         objects,
			ResourceVersion: one.reflector.LastSyncResourceVersion(),
			Lists:           one.lists.Load(),
			WatchLists:      one.watchLists.Load(),
			Watches:         one.watches.Load(),
			Early:           early,
		}
	}
	return json.NewEncoder(os.Stdout).Encode(line)
}

func print(all map[string]*followed) error {
	line := map[string][]any{}
	for name, one := range all {
		// Not null where there are none.
		line[name] = append([]any{}, one.store.List()...)
	}
	return json.NewEncoder(os.Stdout).Encode(line)
}

func events(all map[string]*followed) error {
	line := map[string][]string{}
	for name, one := range all {
		one.mutex.Lock()
		line[name] = append([]string{}, one.events...)
		one.mutex.Unlock()
	}
	return json.NewEncoder(os.Stdout).Encode(line)
}
